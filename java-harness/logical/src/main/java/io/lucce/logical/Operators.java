package io.lucce.logical;

import io.reactivex.rxjava3.core.Completable;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Maybe;
import io.reactivex.rxjava3.core.Observable;
import io.reactivex.rxjava3.core.Single;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/**
 * Operators of Reactor and RxJava on several threads. Each lambda knows the line that has assembled its operator, and the lines that
 * have called that one.
 */
public final class Operators {
    private Operators() {}

    /** Each event allocates one. */
    static final class Signal {}

    static final Map<String, AtomicInteger> EXPECTED = new ConcurrentHashMap<>();
    static final StackWalker WALKER = StackWalker.getInstance();
    static volatile Object sink;

    static void record(String assembled) {
        sink = new Signal();
        EXPECTED.computeIfAbsent(assembled, line -> new AtomicInteger()).incrementAndGet();
    }

    /** The lines of this class from the caller on, innermost first. */
    static String here() {
        return WALKER.walk(frames -> frames.skip(1).filter(frame -> frame.getClassName().equals(Operators.class.getName()))
                .map(frame -> frame.getMethodName() + ":" + frame.getLineNumber())
                .reduce((a, b) -> a + ";" + b).get());
    }

    /** The line that calls this. */
    static String line() {
        return WALKER.walk(frames -> frames.skip(1).findFirst()
                .map(frame -> frame.getMethodName() + ":" + frame.getLineNumber()).get());
    }

    static <T> T seen(String assembled, T value) {
        record(assembled);
        return value;
    }

    public static void main(String[] args) {
        for (int i = 0; i < 5; i++) {
            orders();
            searches();
            monos();
            observables();
            others();
        }
        EXPECTED.forEach((line, count) -> System.out.println(count + "|" + line));
        Schedulers.shutdownNow();
        io.reactivex.rxjava3.schedulers.Schedulers.shutdown();
    }

    static void orders() {
        handle(10);
    }

    static void searches() {
        handle(3);
    }

    /** Two callers assemble the same operators. */
    static void handle(int n) {
        String line = here(); Flux<Integer> mapped = Flux.range(0, n).map(x -> seen(line, x));
        String next = here(); Flux<Integer> kept = mapped.publishOn(Schedulers.parallel()).filter(x -> seen(next, x) >= 0);
        String last = here(); Flux<List<Integer>> lists = kept.subscribeOn(Schedulers.boundedElastic()).buffer(2).doOnNext(x -> record(last));
        String inner = here(); lists.flatMapIterable(x -> x).flatMap(x -> seen(inner, inner(inner, x))).collectList().block();
    }

    /** An operator's code assembles it. `caller`: what has assembled that operator. */
    static Mono<Integer> inner(String caller, int x) {
        String line = line(); return Mono.just(x).hide().map(y -> seenInner(line, caller, y));
    }

    /** The lambda that calls `inner` is on the line that has assembled its operator. */
    static int seenInner(String line, String caller, int value) {
        record(line + ";lambda:" + caller.split("[:;]")[1] + ";" + caller);
        return value;
    }

    static void monos() {
        String line = here(); Mono<Integer> called = Mono.fromCallable(() -> seen(line, 1)).subscribeOn(Schedulers.boundedElastic());
        String next = here(); Mono<Integer> zipped = Mono.zip(called, called, (a, b) -> seen(next, a + b));
        String last = here(); zipped.flatMap(x -> Mono.delay(java.time.Duration.ofMillis(1)).thenReturn(x)).map(x -> seen(last, x)).block();
        String failed = here(); Mono.<Integer>error(new IllegalStateException()).onErrorResume(e -> seen(failed, Mono.just(1))).block();
        String parallel = here(); Flux.range(0, 8).parallel(2).runOn(Schedulers.parallel()).map(x -> seen(parallel, x)).sequential().blockLast();
    }

    static void observables() {
        var computation = io.reactivex.rxjava3.schedulers.Schedulers.computation();
        String line = here(); Observable<Integer> mapped = Observable.range(0, 5).map(x -> seen(line, x));
        String next = here(); Observable<Integer> kept = mapped.observeOn(computation).filter(x -> seen(next, x) >= 0);
        String last = here(); kept.subscribeOn(computation).doOnNext(x -> record(last)).toList().blockingGet();
    }

    static void others() {
        io.reactivex.rxjava3.core.Scheduler cached = io.reactivex.rxjava3.schedulers.Schedulers.io();
        String line = here(); Flowable.range(0, 5).observeOn(cached).map(x -> seen(line, x)).blockingLast();
        String single = here(); Single.fromCallable(() -> seen(single, 1)).subscribeOn(cached).blockingGet();
        String maybe = here(); Maybe.just(1).observeOn(cached).map(x -> seen(maybe, x)).blockingGet();
        // These subscribers are counters, and have others in fields.
        String flat = here(); Flowable.range(0, 5).flatMapSingle(x -> seen(flat, Single.just(x))).blockingLast();
        String group = here(); Flowable.range(0, 5).groupBy(x -> seen(group, x % 2)).blockingLast();
        String completable = here(); Completable.fromAction(() -> record(completable)).subscribeOn(cached).blockingAwait();
    }
}
