package io.lucce.netty;

/** The trackers of objects that are not released. The lists keep them alive; threads share few of them. */
final class TrackerLists {
    private static final int LISTS = 64;

    private final TrackerList[] lists = new TrackerList[LISTS];

    TrackerLists() {
        for (int at = 0; at < LISTS; at++) {
            lists[at] = new TrackerList();
        }
    }

    /** The list for trackers that the current thread makes. */
    TrackerList own() {
        return lists[(int) Thread.currentThread().getId() & (LISTS - 1)];
    }

    /** A list whose entries are linked by their own fields. */
    static final class TrackerList {
        private ContextTracker<?> first;

        synchronized void add(ContextTracker<?> tracker) {
            tracker.next = first;
            if (first != null) {
                first.previous = tracker;
            }
            first = tracker;
            tracker.isListed = true;
        }

        /** Returns whether it was there. */
        synchronized boolean remove(ContextTracker<?> tracker) {
            if (!tracker.isListed) {
                return false;
            }
            if (tracker.previous == null) {
                first = tracker.next;
            } else {
                tracker.previous.next = tracker.next;
            }
            if (tracker.next != null) {
                tracker.next.previous = tracker.previous;
            }
            tracker.previous = null;
            tracker.next = null;
            tracker.isListed = false;
            return true;
        }
    }
}
