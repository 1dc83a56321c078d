package io.lucce.programs;

import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;

/** Channels that JDK 11 lacks: see {@link Io}. */
public final class NewerChannels implements Io.UnixChannels {
    @Override
    public ServerSocketChannel listen(Path path) throws Exception {
        return ServerSocketChannel.open(StandardProtocolFamily.UNIX).bind(UnixDomainSocketAddress.of(path));
    }

    @Override
    public SocketChannel open() throws Exception {
        return SocketChannel.open(StandardProtocolFamily.UNIX);
    }
}
