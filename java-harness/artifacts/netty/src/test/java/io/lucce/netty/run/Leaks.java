package io.lucce.netty.run;

import io.lucce.netty.LucceLeakDetection;
import io.lucce.netty.TestAccess;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.CompositeByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.util.ResourceLeakDetector;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Function;

/** Forgets buffers in known ways, and returns the records of the leaks that Netty reports. Each class loader has its own Netty. */
public final class Leaks implements Function<String, List<String>> {
    /** What happens to a buffer before it is forgotten: Netty keeps at most four accesses of each for certain. */
    private static final List<Consumer<ByteBuf>> ACCESSES = List.of(
            buffer -> {},
            buffer -> buffer.writeLong(1),
            buffer -> {
                buffer.writeLong(1);
                buffer.readInt();
                buffer.touch("a hint");
            },
            buffer -> {
                for (int round = 0; round < 3; round++) {
                    buffer.writeByte(round);
                }
            },
            buffer -> buffer.retain().slice(0, 8).getByte(0),
            buffer -> deep(buffer, 40),
            buffer -> inThread(() -> buffer.setLong(0, 7)),
            buffer -> buffer.forEachByte(each -> true));

    /** {@code mode}: see {@code NettyRun}; {@code refused}: nothing is installed, and a buffer is as Netty makes it. */
    @Override
    public List<String> apply(String mode) {
        boolean isAsExpected = switch (mode) {
            case "netty" -> true;
            case "refused" -> !LucceLeakDetection.install();
            case "traces" -> TestAccess.replaceDetector();
            default -> LucceLeakDetection.install();
        };
        if (!isAsExpected) {
            throw new IllegalStateException(mode);
        }
        ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.PARANOID);
        if (mode.equals("refused")) {
            release(Pool.POOL.directBuffer(64));
            return List.of();
        }
        List<String> records = Collections.synchronizedList(new ArrayList<>());
        ByteBufUtil.setLeakListener((resource, record) -> records.add(resource + record));
        ACCESSES.forEach(Leaks::forgetEach);
        for (int buffer = 0; buffer < 500; buffer++) {
            release(Pool.POOL.directBuffer(64));
        }
        inThread(() -> forgetEach(buffer -> buffer.writeLong(3)));
        collect(records);
        return records;
    }

    private static void forgetEach(Consumer<ByteBuf> access) {
        // The same leaks are reported once.
        for (int round = 0; round < 3; round++) {
            access.accept(Pool.POOL.directBuffer(64).writeZero(0));
            access.accept(Pool.POOL.heapBuffer(64).setZero(0, 64));
            access.accept(UnpooledByteBufAllocator.DEFAULT.buffer(64).setZero(0, 64));
            CompositeByteBuf all = Pool.POOL.compositeBuffer();
            access.accept(all.addComponent(false, Pool.POOL.buffer(64).writeZero(64)));
        }
    }

    /** Apart: Netty's classes are loaded after the installation. */
    private static final class Pool {
        static final PooledByteBufAllocator POOL = new PooledByteBufAllocator(true);
    }

    private static void deep(ByteBuf buffer, int frames) {
        if (frames > 0) {
            deep(buffer, frames - 1);
        } else {
            buffer.writeLong(frames);
        }
    }

    private static void release(ByteBuf buffer) {
        buffer.writeLong(1);
        buffer.retain();
        buffer.release();
        buffer.release();
    }

    private static void inThread(Runnable work) {
        Thread thread = new Thread(work, "another");
        thread.start();
        try {
            thread.join();
        } catch (InterruptedException end) {
            throw new IllegalStateException(end);
        }
    }

    /** Until a second has brought no more records: Netty reports leaks when it makes another buffer. */
    private static void collect(List<String> records) {
        int before = -1;
        for (int round = 0; round < 100 && (records.isEmpty() || records.size() > before || round < 5); round++) {
            before = records.size();
            System.gc();
            try {
                Thread.sleep(100);
            } catch (InterruptedException end) {
                throw new IllegalStateException(end);
            }
            Pool.POOL.buffer(1).release();
        }
    }
}
