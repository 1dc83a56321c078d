package io.lucce.netty.run;

import io.lucce.netty.LucceLeakDetection;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.util.ResourceLeakDetector;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;

/**
 * The CPU time of requests and answers in buffers: {@code NettyCost LEVEL ROUNDS [own]}. Prints nanoseconds for each round of
 * 100,000 requests.
 */
final class NettyCost {
    private static final int REQUESTS = 100_000;
    private static final byte[] HEADERS = "Host: example.com\r\nAccept: */*\r\nUser-Agent: cost/1\r\n\r\n".getBytes(StandardCharsets.US_ASCII);

    private NettyCost() {}

    public static void main(String[] args) {
        if (args.length > 2 && !LucceLeakDetection.install()) {
            throw new IllegalStateException("Netty's detection goes on");
        }
        ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.valueOf(args[0]));
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long sum = 0;
        for (int round = Integer.parseInt(args[1]); round > 0; round--) {
            long begun = threads.getCurrentThreadCpuTime();
            for (int request = 0; request < REQUESTS; request++) {
                sum += serve(PooledByteBufAllocator.DEFAULT, request);
            }
            System.out.println((threads.getCurrentThreadCpuTime() - begun) / REQUESTS);
        }
        System.out.println("checksum " + sum);
    }

    /** Reads a request, finds the ends of its lines, and writes an answer. */
    private static long serve(ByteBufAllocator allocator, int number) {
        ByteBuf request = allocator.directBuffer(512);
        ByteBuf answer = allocator.directBuffer(512);
        try {
            request.writeCharSequence("GET /orders/" + number + " HTTP/1.1\r\n", StandardCharsets.US_ASCII);
            request.writeBytes(HEADERS);
            int lines = 0;
            for (int end = request.bytesBefore((byte) '\n'); end > 0; end = request.bytesBefore((byte) '\n')) {
                lines += request.readSlice(end + 1).getByte(0);
            }
            answer.writeCharSequence("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n", StandardCharsets.US_ASCII);
            answer.writeLong(lines);
            return answer.readableBytes() + lines;
        } finally {
            request.release();
            answer.release();
        }
    }
}
