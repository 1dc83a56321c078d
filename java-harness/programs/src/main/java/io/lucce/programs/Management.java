package io.lucce.programs;

import com.sun.management.GarbageCollectionNotificationInfo;
import io.lucce.CallContext;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryNotificationInfo;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import javax.management.MBeanServer;
import javax.management.NotificationEmitter;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeData;

/** What the VM tells its management beans, and what they ask it: objects made in loops of the VM. */
public final class Management {
    private static final int ROUNDS = 10;
    private static final String[] COMMANDS = {
        "vmSystemProperties", "gcFinalizerInfo", "gcRunFinalization", "jfrCheck",
    };
    static volatile Object kept;

    public static void main(String[] args) throws Exception {
        threads();
        collections();
        thresholds();
        commands();
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }

    static void threads() {
        ThreadMXBean bean = ManagementFactory.getThreadMXBean();
        for (int i = 0; i < ROUNDS; i++) {
            ThreadInfo[] all = bean.dumpAllThreads(true, true);
            Check.equal(true, all.length > 1);
            kept = bean.getThreadInfo(bean.getAllThreadIds(), 5);
            kept = bean.getThreadInfo(Thread.currentThread().getId());
            Check.that(CallContext.current(), new Throwable());
        }
    }

    /** Listeners run on a thread of the VM, called from no Java frame. */
    static void collections() throws Exception {
        Semaphore told = new Semaphore(0);
        for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
            ((NotificationEmitter) bean).addNotificationListener(
                    (notification, handback) -> {
                        Check.that(CallContext.current(), new Throwable());
                        kept = GarbageCollectionNotificationInfo.from((CompositeData) notification.getUserData());
                        told.release();
                    },
                    null,
                    null);
        }
        for (int i = 0; i < ROUNDS; i++) {
            System.gc();
            Check.equal(true, told.tryAcquire(30, TimeUnit.SECONDS));
        }
        for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
            kept = ((com.sun.management.GarbageCollectorMXBean) bean).getLastGcInfo();
        }
    }

    /** Sensors: set off by each collection after they were reset. */
    static void thresholds() throws Exception {
        Semaphore told = new Semaphore(0);
        NotificationEmitter memory = (NotificationEmitter) ManagementFactory.getMemoryMXBean();
        memory.addNotificationListener(
                (notification, handback) -> {
                    Check.that(CallContext.current(), new Throwable());
                    kept = MemoryNotificationInfo.from((CompositeData) notification.getUserData());
                    told.release();
                },
                null,
                null);
        kept = new byte[200_000];
        MemoryPoolMXBean[] pools = ManagementFactory.getMemoryPoolMXBeans().stream()
                .filter(MemoryPoolMXBean::isCollectionUsageThresholdSupported)
                .toArray(MemoryPoolMXBean[]::new);
        Check.equal(true, pools.length > 0);
        for (int i = 0; i < ROUNDS; i++) {
            threshold(pools, 1);
            System.gc();
            Check.equal(true, told.tryAcquire(30, TimeUnit.SECONDS));
            threshold(pools, 1L << 40);
            System.gc();
        }
        Check.that(CallContext.current(), new Throwable());
    }

    private static void threshold(MemoryPoolMXBean[] pools, long bytes) {
        for (MemoryPoolMXBean pool : pools) {
            long most = pool.getUsage().getMax();
            pool.setCollectionUsageThreshold(most < 0 ? bytes : Math.min(most, bytes));
        }
    }

    static void commands() throws Exception {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        ObjectName name = new ObjectName("com.sun.management:type=DiagnosticCommand");
        Object[] none = {new String[0]};
        String[] types = {String[].class.getName()};
        for (int i = 0; i < 3; i++) {
            for (String command : COMMANDS) {
                boolean plain = Arrays.stream(server.getMBeanInfo(name).getOperations())
                        .anyMatch(it -> it.getName().equals(command) && it.getSignature().length == 0);
                String text = (String) (plain
                        ? server.invoke(name, command, null, null)
                        : server.invoke(name, command, none, types));
                Check.equal(false, text == null);
                Check.that(CallContext.current(), new Throwable());
            }
        }
    }
}
