package io.lucce.programs;

import static java.lang.invoke.MethodType.methodType;

import io.lucce.CallContext;
import java.lang.invoke.CallSite;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandleProxies;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.MutableCallSite;
import java.lang.invoke.SwitchPoint;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** Method handles and their combinators: frames that no class file shows lie between ours. */
public final class MethodHandleCalls {
    private static final MethodHandles.Lookup LOOKUP = MethodHandles.lookup();
    static Object kept;
    static int counter;

    public static void main(String[] args) throws Throwable {
        for (int i = 0; i < Repeats.of(40); i++) {
            direct();
            adapted();
            combined();
            exceptions();
            loops();
            bound();
            spreading();
            varHandles();
            callSites();
        }
        proxies();
        recursive();
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }

    static MethodHandle find(String name, Class<?> result, Class<?>... parameters) throws Exception {
        return LOOKUP.findStatic(MethodHandleCalls.class, name, methodType(result, parameters));
    }

    static int twice(int n) {
        kept = new byte[60];
        Check.that(CallContext.current(), new Throwable());
        return 2 * n;
    }

    static int add(int a, int b) {
        kept = new byte[61];
        Check.that(CallContext.current(), new Throwable());
        return a + b;
    }

    static boolean even(int n) {
        Check.that(CallContext.current(), new Throwable());
        return n % 2 == 0;
    }

    static int fails(int depth) {
        kept = new byte[62];
        if (depth <= 0) {
            Check.that(CallContext.current(), new Throwable());
            throw new IllegalStateException("through method handles");
        }
        return fails(depth - 1);
    }

    static int handles(IllegalStateException e, int n) {
        kept = new byte[63];
        Check.that(CallContext.current(), new Throwable());
        return -n;
    }

    int field;

    MethodHandleCalls() {
        Check.that(CallContext.current(), new Throwable());
    }

    int virtual(int n) {
        Check.that(CallContext.current(), new Throwable());
        return n + 1;
    }

    static void direct() throws Throwable {
        MethodHandle twice = find("twice", int.class, int.class);
        Check.equal(8, (int) twice.invokeExact(4));
        Check.that(CallContext.current(), new Throwable());
        MethodHandle make = LOOKUP.findConstructor(MethodHandleCalls.class, methodType(void.class));
        MethodHandleCalls made = (MethodHandleCalls) make.invokeExact();
        Check.that(CallContext.current(), new Throwable());
        MethodHandle virtual = LOOKUP.findVirtual(MethodHandleCalls.class, "virtual", methodType(int.class, int.class));
        Check.equal(5, (int) virtual.invokeExact(made, 4));
        Check.that(CallContext.current(), new Throwable());
        MethodHandle special = LOOKUP.findSpecial(Object.class, "toString", methodType(String.class), MethodHandleCalls.class);
        kept = (String) special.invokeExact(made);
        Check.that(CallContext.current(), new Throwable());
        MethodHandle compare = LOOKUP.findVirtual(Comparable.class, "compareTo", methodType(int.class, Object.class));
        Check.equal(0, (int) compare.invokeExact((Comparable<?>) new Compared(), (Object) new Compared()));
        Check.that(CallContext.current(), new Throwable());
        MethodHandle reflected = LOOKUP.unreflect(MethodHandleCalls.class.getDeclaredMethod("twice", int.class));
        Check.equal(2, (int) reflected.invoke(1));
        Check.that(CallContext.current(), new Throwable());
    }

    static final class Compared implements Comparable<Compared> {
        @Override
        public int compareTo(Compared other) {
            Check.that(CallContext.current(), new Throwable());
            return 0;
        }
    }

    static void adapted() throws Throwable {
        MethodHandle twice = find("twice", int.class, int.class);
        Check.equal(6L, (long) twice.invoke((short) 3));
        Check.that(CallContext.current(), new Throwable());
        Object boxed = twice.invoke((Object) 5);
        Check.equal(10, boxed);
        Check.that(CallContext.current(), new Throwable());
        MethodHandle generic = twice.asType(MethodType.genericMethodType(1));
        Check.equal(12, generic.invokeExact((Object) 6));
        Check.that(CallContext.current(), new Throwable());
        Check.equal(14, twice.invokeWithArguments(7));
        Check.equal(14, twice.invokeWithArguments(List.of(7)));
        Check.that(CallContext.current(), new Throwable());
        try {
            generic.invokeExact("no boxing here");
            Check.wrong("must throw");
        } catch (java.lang.invoke.WrongMethodTypeException e) {
            Check.that(CallContext.current(), new Throwable());
        }
        try {
            kept = generic.invoke("no number");
            Check.wrong("must throw");
        } catch (ClassCastException e) {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static void combined() throws Throwable {
        MethodHandle twice = find("twice", int.class, int.class);
        MethodHandle add = find("add", int.class, int.class, int.class);
        MethodHandle even = find("even", boolean.class, int.class);
        MethodHandle filtered = MethodHandles.filterArguments(add, 0, twice, twice);
        Check.equal(14, (int) filtered.invokeExact(3, 4));
        Check.that(CallContext.current(), new Throwable());
        MethodHandle folded = MethodHandles.foldArguments(add, twice);
        Check.equal(9, (int) folded.invokeExact(3));
        Check.that(CallContext.current(), new Throwable());
        MethodHandle result = MethodHandles.filterReturnValue(add, twice);
        Check.equal(14, (int) result.invokeExact(3, 4));
        Check.that(CallContext.current(), new Throwable());
        MethodHandle collected = MethodHandles.collectArguments(add, 1, add);
        Check.equal(6, (int) collected.invokeExact(1, 2, 3));
        Check.that(CallContext.current(), new Throwable());
        MethodHandle half = MethodHandles.insertArguments(add, 0, 10);
        MethodHandle guarded = MethodHandles.guardWithTest(even, twice, half);
        for (int i = 0; i < 4; i++) {
            Check.equal(i % 2 == 0 ? 2 * i : 10 + i, (int) guarded.invokeExact(i));
            Check.that(CallContext.current(), new Throwable());
        }
        MethodHandle permuted = MethodHandles.permuteArguments(add, methodType(int.class, int.class), 0, 0);
        Check.equal(4, (int) permuted.invokeExact(2));
        MethodHandle dropped = MethodHandles.dropArguments(twice, 0, Object.class, long.class);
        Check.equal(4, (int) dropped.invokeExact((Object) "x", 1L, 2));
        Check.that(CallContext.current(), new Throwable());
    }

    static void exceptions() throws Throwable {
        MethodHandle fails = find("fails", int.class, int.class);
        MethodHandle twice = find("twice", int.class, int.class);
        MethodHandle handles = find("handles", int.class, IllegalStateException.class, int.class);
        MethodHandle caught = MethodHandles.catchException(fails, IllegalStateException.class, handles);
        for (int depth = 0; depth < 6; depth++) {
            Check.equal(-depth, (int) caught.invokeExact(depth));
            kept = new byte[64];
            Check.that(CallContext.current(), new Throwable());
        }
        kept = leafCaught(caught);
        Check.that(CallContext.current(), new Throwable());
        MethodHandle both = MethodHandles.filterReturnValue(caught, twice);
        Check.equal(-8, (int) both.invokeExact(4));
        Check.that(CallContext.current(), new Throwable());
        MethodHandle nested = MethodHandles.catchException(
                MethodHandles.filterArguments(fails, 0, caught), IllegalStateException.class, handles);
        Check.equal(-3, (int) nested.invokeExact(3));
        Check.that(CallContext.current(), new Throwable());
        MethodHandle cleanup = find("cleanup", int.class, Throwable.class, int.class, int.class);
        Check.equal(107, (int) MethodHandles.tryFinally(twice, cleanup).invokeExact(7));
        Check.that(CallContext.current(), new Throwable());
        Check.equal(105, (int) MethodHandles.tryFinally(caught, cleanup).invokeExact(5));
        try {
            kept = (int) MethodHandles.tryFinally(fails, cleanup).invokeExact(5);
            Check.wrong("must throw");
        } catch (IllegalStateException e) {
            Check.that(CallContext.current(), new Throwable());
        }
        MethodHandle thrower = MethodHandles.throwException(int.class, IllegalStateException.class);
        try {
            kept = (int) thrower.invokeExact(new IllegalStateException());
            Check.wrong("must throw");
        } catch (IllegalStateException e) {
            Check.that(CallContext.current(), new Throwable());
        }
        Check.that(CallContext.current(), new Throwable());
    }

    static int cleanup(Throwable thrown, int result, int argument) {
        kept = new byte[65];
        Check.that(CallContext.current(), new Throwable());
        return 100 + argument;
    }

    /** After the handle has caught what its target threw, the caller just goes on. */
    static Object leafCaught(MethodHandle caught) throws Throwable {
        int result = (int) caught.invokeExact(8);
        return new byte[66 - result];
    }

    static void loops() throws Throwable {
        MethodHandle add = find("add", int.class, int.class, int.class);
        MethodHandle zero = MethodHandles.constant(int.class, 0);
        MethodHandle counted = MethodHandles.countedLoop(
                MethodHandles.constant(int.class, 5), zero, add);
        Check.equal(10, (int) counted.invokeExact());
        Check.that(CallContext.current(), new Throwable());
        MethodHandle small = find("small", boolean.class, int.class);
        MethodHandle next = find("next", int.class, int.class);
        Check.equal(3, (int) MethodHandles.whileLoop(zero, small, next).invokeExact());
        Check.that(CallContext.current(), new Throwable());
        Check.equal(3, (int) MethodHandles.doWhileLoop(zero, next, small).invokeExact());
        Check.that(CallContext.current(), new Throwable());
        MethodHandle each = find("each", void.class, String.class);
        MethodHandle iterated = MethodHandles.iteratedLoop(null, null, each);
        iterated.invoke(List.of("a", "b", "c"));
        Check.that(CallContext.current(), new Throwable());
    }

    static boolean small(int n) {
        Check.that(CallContext.current(), new Throwable());
        return n < 3;
    }

    static int next(int n) {
        Check.that(CallContext.current(), new Throwable());
        return n + 1;
    }

    static void each(String text) {
        Check.that(CallContext.current(), new Throwable());
        kept = text;
    }

    static void bound() throws Throwable {
        MethodHandle virtual = LOOKUP.bind(new MethodHandleCalls(), "virtual", methodType(int.class, int.class));
        Check.equal(3, (int) virtual.invokeExact(2));
        Check.that(CallContext.current(), new Throwable());
        MethodHandle text = MethodHandles.publicLookup()
                .findVirtual(Object.class, "toString", methodType(String.class)).bindTo(new Texted());
        Check.equal("text", (String) text.invokeExact());
        Check.that(CallContext.current(), new Throwable());
    }

    static final class Texted {
        @Override
        public String toString() {
            Check.that(CallContext.current(), new Throwable());
            return "text";
        }
    }

    static int sum(Object... numbers) {
        Check.that(CallContext.current(), new Throwable());
        int sum = 0;
        for (Object number : numbers) {
            sum += (Integer) number;
        }
        return sum;
    }

    static void spreading() throws Throwable {
        MethodHandle add = find("add", int.class, int.class, int.class);
        MethodHandle spread = add.asSpreader(Object[].class, 2);
        Check.equal(7, (int) spread.invokeExact(new Object[] {3, 4}));
        Check.that(CallContext.current(), new Throwable());
        MethodHandle sum = find("sum", int.class, Object[].class);
        Check.equal(10, (int) sum.asVarargsCollector(Object[].class).invoke(1, 2, 3, 4));
        Check.equal(6, (int) sum.asCollector(Object[].class, 3).invoke(1, 2, 3));
        Check.that(CallContext.current(), new Throwable());
    }

    private static final VarHandle COUNTER;
    private static final VarHandle CELLS = MethodHandles.arrayElementVarHandle(Object[].class);

    static {
        try {
            COUNTER = LOOKUP.findStaticVarHandle(MethodHandleCalls.class, "counter", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    static void varHandles() throws Throwable {
        int before = (int) COUNTER.getAndAdd(1);
        Check.equal(true, COUNTER.compareAndSet(before + 1, before + 2));
        Check.that(CallContext.current(), new Throwable());
        Object[] cells = new Object[2];
        CELLS.setRelease(cells, 1, new byte[67]);
        Check.that(CallContext.current(), new Throwable());
        try {
            CELLS.setVolatile(cells, 2, new byte[68]);
            Check.wrong("must throw");
        } catch (ArrayIndexOutOfBoundsException e) {
            Check.that(CallContext.current(), new Throwable());
        }
        MethodHandle getter = COUNTER.toMethodHandle(VarHandle.AccessMode.GET_VOLATILE);
        Check.equal(before + 2, (int) getter.invokeExact());
        Check.that(CallContext.current(), new Throwable());
    }

    static void callSites() throws Throwable {
        MutableCallSite site = new MutableCallSite(find("twice", int.class, int.class));
        MethodHandle invoker = site.dynamicInvoker();
        Check.equal(4, (int) invoker.invokeExact(2));
        Check.that(CallContext.current(), new Throwable());
        site.setTarget(find("next", int.class, int.class));
        MutableCallSite.syncAll(new MutableCallSite[] {site});
        Check.equal(3, (int) invoker.invokeExact(2));
        Check.that(CallContext.current(), new Throwable());
        SwitchPoint valid = new SwitchPoint();
        MethodHandle switched = valid.guardWithTest(find("twice", int.class, int.class), find("next", int.class, int.class));
        Check.equal(4, (int) switched.invokeExact(2));
        SwitchPoint.invalidateAll(new SwitchPoint[] {valid});
        Check.equal(3, (int) switched.invokeExact(2));
        Check.that(CallContext.current(), new Throwable());
        CallSite constant = new java.lang.invoke.ConstantCallSite(site.dynamicInvoker());
        Check.equal(6, (int) constant.dynamicInvoker().invokeExact(5));
        Check.that(CallContext.current(), new Throwable());
    }

    static int compare(Object a, Object b) {
        Check.that(CallContext.current(), new Throwable());
        return a.toString().compareTo(b.toString());
    }

    @SuppressWarnings("unchecked")
    static void proxies() throws Throwable {
        MethodHandle compare = find("compare", int.class, Object.class, Object.class);
        Comparator<Object> comparator = MethodHandleProxies.asInterfaceInstance(Comparator.class, compare);
        List<Object> list = new ArrayList<>(List.of("c", "a", "b"));
        list.sort(comparator);
        Check.equal(List.of("a", "b", "c"), list);
        Check.that(CallContext.current(), new Throwable());
    }

    static int down(MethodHandle self, int depth) throws Throwable {
        Check.that(CallContext.current(), new Throwable());
        int below = depth == 0 ? 0 : (int) self.invokeExact(self, depth - 1);
        Check.that(CallContext.current(), new Throwable());
        return below + 1;
    }

    static void recursive() throws Throwable {
        MethodHandle down = find("down", int.class, MethodHandle.class, int.class);
        Check.equal(51, (int) down.invokeExact(down, 50));
        Check.that(CallContext.current(), new Throwable());
    }
}
