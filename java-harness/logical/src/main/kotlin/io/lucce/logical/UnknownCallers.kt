package io.lucce.logical

import java.lang.StackWalker.StackFrame
import java.lang.invoke.MethodHandles
import java.nio.file.Files
import java.nio.file.Path
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.CountDownLatch
import java.util.concurrent.atomic.AtomicInteger
import kotlin.coroutines.Continuation
import kotlin.coroutines.intrinsics.createCoroutineUnintercepted
import kotlin.coroutines.resume
import org.objectweb.asm.ClassWriter
import org.objectweb.asm.Opcodes
import org.objectweb.asm.Type
import reactor.core.CoreSubscriber
import reactor.core.publisher.Flux
import reactor.core.scheduler.Schedulers

/** A class of its own: an attached agent replaces its code, and the JVM tells no lines of running frames of replaced code. */
object SignalRecorder {
    /** The agent counts the calls. */
    @JvmStatic
    fun record(callers: String) = UnknownCallers.add(callers)
}

/**
 * Operators and a continuation that exist before a file appears, and signals after that. An agent that was attached in between
 * knows no logical callers; one from the start knows those of most.
 *
 * Prints how many calls of `record` each of both sees below which lines: `attached COUNT|line;line;…`, and `started …`.
 */
object UnknownCallers {
    private const val OWN = "io.lucce.logical.UnknownCallers"
    private val libraries = listOf("reactor.", "io.reactivex.", "kotlin.")
    private val attached = ConcurrentHashMap<String, AtomicInteger>()
    private val started = ConcurrentHashMap<String, AtomicInteger>()
    private val worker = Schedulers.newSingle("worker", true)
    private val rxWorker = io.reactivex.rxjava3.schedulers.Schedulers.single()

    /** `callers`: the logical callers of its caller. */
    @JvmStatic
    fun add(callers: String) {
        val frames = walker.walk { frames -> frames.skip(2).toList() }
        attached.computeIfAbsent(threadLines(frames)) { AtomicInteger() }.incrementAndGet()
        val own = frames.takeWhile { !isLibrary(it) }.filter { isOwn(it) }.map { ownLine(it) }
        started.computeIfAbsent((own + callers).joinToString(";")) { AtomicInteger() }.incrementAndGet()
    }

    private fun isLibrary(frame: StackFrame) = libraries.any { frame.className.startsWith(it) }

    /** The thread's own lines; `?` is in place of the outermost frames of libraries, whose logical callers are not known. */
    private fun threadLines(frames: List<StackFrame>): String {
        val outermost = frames.indexOfLast { isLibrary(it) }
        return frames.withIndex().filter { isOwn(it.value) || it.index == outermost }
            .joinToString(";") { if (it.index == outermost) "?" else ownLine(it.value) }
    }

    private fun isOwn(frame: StackFrame) = frame.className.startsWith(OWN)

    private fun ownLine(frame: StackFrame) = frame.methodName + ":" + frame.lineNumber

    /** The own lines from the caller on. */
    private fun callers(): String = walker.walk { frames ->
        frames.skip(1).toList().filter { isOwn(it) }.joinToString(";") { ownLine(it) }
    }

    /** Others start the threads that signals come from. */
    private fun startWorkers() {
        Flux.just(1).publishOn(worker).blockLast()
        io.reactivex.rxjava3.core.Observable.just(1).observeOn(rxWorker).blockingLast()
    }

    private fun mapped(): Runnable {
        val line = callers(); val flux = Flux.range(0, 7).map { SignalRecorder.record(line); it }
        return Runnable { flux.blockLast() }
    }

    private fun published(): Runnable {
        val line = callers(); val flux = Flux.range(0, 5).publishOn(worker).map { SignalRecorder.record(line); it }
        return Runnable { flux.blockLast() }
    }

    private fun observed(): Runnable {
        val line = callers(); val observable = io.reactivex.rxjava3.core.Observable.range(0, 3).observeOn(rxWorker).map { SignalRecorder.record(line); it }
        return Runnable { observable.blockingLast() }
    }

    /** No constructor runs for the copy of an operator. */
    private fun copied(): Runnable {
        val flux = Flux.range(0, 4).publishOn(worker).map { SignalRecorder.record("unknown"); it }
        val field = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe")
        field.isAccessible = true
        val copy = (field.get(null) as sun.misc.Unsafe).allocateInstance(flux.javaClass)
        val classes = generateSequence<Class<*>>(flux.javaClass) { it.superclass }
        for (own in classes.flatMap { it.declaredFields.asSequence() }) {
            if (java.lang.reflect.Modifier.isStatic(own.modifiers) || own.name.startsWith("\$lucce")) continue
            own.isAccessible = true
            own.set(copy, own.get(flux))
        }
        @Suppress("UNCHECKED_CAST")
        return Runnable { (copy as Flux<Int>).blockLast() }
    }

    /** Called by a method of a subscriber that is too large for hooks. */
    @JvmStatic
    fun seen() = SignalRecorder.record("unknown")

    private fun large(): Runnable {
        val lookup = MethodHandles.privateLookupIn(Flux::class.java, MethodHandles.lookup())
        val subscriber = lookup.defineClass(largeSubscriber()).getDeclaredConstructor().newInstance()
        return Runnable {
            val done = CountDownLatch(1)
            @Suppress("UNCHECKED_CAST")
            Flux.range(0, 6).publishOn(worker).doFinally { done.countDown() }.subscribe(subscriber as CoreSubscriber<Int>)
            done.await()
        }
    }

    private fun largeSubscriber(): ByteArray {
        val writer = ClassWriter(ClassWriter.COMPUTE_MAXS)
        val subscriber = Type.getInternalName(CoreSubscriber::class.java)
        writer.visit(
            Opcodes.V11, Opcodes.ACC_PUBLIC, "reactor/core/publisher/LargeSubscriber", null, "java/lang/Object", arrayOf(subscriber),
        )
        fun method(name: String, descriptor: String, body: org.objectweb.asm.MethodVisitor.() -> Unit) {
            val code = writer.visitMethod(Opcodes.ACC_PUBLIC, name, descriptor, null, null)
            code.visitCode()
            code.body()
            code.visitInsn(Opcodes.RETURN)
            code.visitMaxs(0, 0)
            code.visitEnd()
        }
        method("<init>", "()V") {
            visitVarInsn(Opcodes.ALOAD, 0)
            visitMethodInsn(Opcodes.INVOKESPECIAL, "java/lang/Object", "<init>", "()V", false)
        }
        method("onSubscribe", "(Lorg/reactivestreams/Subscription;)V") {
            visitVarInsn(Opcodes.ALOAD, 1)
            visitLdcInsn(Long.MAX_VALUE)
            visitMethodInsn(Opcodes.INVOKEINTERFACE, "org/reactivestreams/Subscription", "request", "(J)V", true)
        }
        method("onNext", "(Ljava/lang/Object;)V") {
            repeat(65_525) { visitInsn(Opcodes.NOP) }
            visitMethodInsn(Opcodes.INVOKESTATIC, OWN.replace('.', '/'), "seen", "()V", false)
        }
        method("onError", "(Ljava/lang/Throwable;)V") {}
        method("onComplete", "()V") {}
        writer.visitEnd()
        return writer.toByteArray()
    }

    /** Any thread may go on with it. */
    private fun suspended(): Runnable {
        val line = callers(); val begin = continuation(line)
        return Runnable {
            val thread = Thread { begin.resume(Unit) }
            thread.start()
            thread.join()
        }
    }

    private fun continuation(line: String): Continuation<Unit> {
        val begin = callers().substringBefore(';'); return body { SignalRecorder.record("$begin;$line") }.createCoroutineUnintercepted(Completion())
    }

    private fun body(block: suspend () -> Unit) = block

    @JvmStatic
    fun main(args: Array<String>) {
        startWorkers()
        val runs = listOf(mapped(), published(), observed(), copied(), large(), suspended())
        println("ready")
        while (!Files.exists(Path.of(args[0]))) Thread.sleep(5)
        runs.forEach { it.run() }
        attached.forEach { (lines, count) -> println("attached $count|$lines") }
        started.forEach { (lines, count) -> println("started $count|$lines") }
    }
}
