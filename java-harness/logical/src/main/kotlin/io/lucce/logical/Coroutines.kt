package io.lucce.logical

import java.io.ByteArrayInputStream
import java.io.ByteArrayOutputStream
import java.io.ObjectInputStream
import java.io.ObjectOutputStream
import java.io.ObjectStreamClass
import java.io.Serializable
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicInteger
import kotlin.coroutines.Continuation
import kotlin.coroutines.CoroutineContext
import kotlin.coroutines.EmptyCoroutineContext
import kotlin.coroutines.intrinsics.createCoroutineUnintercepted
import kotlin.coroutines.resume
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOn
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import kotlinx.coroutines.yield

/** Each event allocates one. */
class Marker

/** How many events have happened below which lines of this file, innermost first. Each call passes its own lines on. */
val expected = ConcurrentHashMap<String, AtomicInteger>()
var sink: Any? = null

fun record(path: List<String>) {
    sink = Marker()
    expected.computeIfAbsent(path.joinToString(";")) { AtomicInteger() }.incrementAndGet()
}

val walker: StackWalker = StackWalker.getInstance()

/** The line that calls this. */
fun here(): String = walker.walk { frames ->
    frames.skip(1).findFirst().map { "${it.className}.${it.methodName}:${it.lineNumber}" }.get()
}

fun List<String>.calledFrom(line: String): List<String> = listOf(line) + this

/** A coroutine that this line starts. */
fun startedAt(line: String): List<String> = listOf("started", line)

suspend fun leaf(path: List<String>) {
    record(path.calledFrom(here()))
    delay(1)
    record(path.calledFrom(here()))
    yield()
    record(path.calledFrom(here()))
}

suspend fun service(path: List<String>) {
    leaf(path.calledFrom(here()))
    leaf(path.calledFrom(here()))
    record(path.calledFrom(here()))
}

/** Its last call is its only one: the compiler gives it no continuation. */
suspend fun orderHandler(path: List<String>) = service(path.calledFrom(here()))

suspend fun searchHandler(path: List<String>) {
    val outer = path.calledFrom(here()); withContext(Dispatchers.IO) {
        service(outer.calledFrom(here()))
    }
    record(path.calledFrom(here()))
}

suspend fun recursion(path: List<String>, depth: Int) {
    if (depth > 0) recursion(path.calledFrom(here()), depth - 1)
    delay(1)
    record(path.calledFrom(here()))
}

suspend fun failing(path: List<String>) {
    delay(1)
    record(path.calledFrom(here()))
    throw IllegalStateException("expected")
}

suspend fun catching(path: List<String>) {
    try {
        failing(path.calledFrom(here()))
    } catch (e: IllegalStateException) {
        record(path.calledFrom(here()))
        leaf(path.calledFrom(here()))
    }
}

suspend fun children(path: List<String>) {
    val outer = path.calledFrom(here()); coroutineScope {
        val results = (1..3).map { val start = here(); async { leaf(startedAt(start).calledFrom(here())) } }
        results.forEach { it.await() }
        record(outer.calledFrom(here()))
        val start = here(); launch(start = CoroutineStart.UNDISPATCHED) { yield(); record(startedAt(start).calledFrom(here())) }
    }
    record(path.calledFrom(here()))
}

/** Its consumer calls a generator directly. */
suspend fun generator(path: List<String>) {
    var caller = path
    val numbers = sequence { for (i in 1..100) { record(caller.calledFrom(here())); yield(i) } }.iterator()
    for (i in 1..3) {
        delay(1)
        caller = path.calledFrom(here()); numbers.next()
    }
}

suspend fun consumer(path: List<String>) {
    val lines = flow<Any> { delay(1); emit(here()); delay(1); emit(here()) }
    val outer = path.calledFrom(here()); lines.collect {
        record(outer.calledFrom("$it").calledFrom(here()))
        delay(1)
        record(outer.calledFrom("$it").calledFrom(here()))
    }
    // Here another coroutine emits.
    val inner = path.calledFrom(here()); lines.flowOn(Dispatchers.IO).collect {
        delay(1)
        record(inner.calledFrom(here()))
    }
}

suspend fun receiver(path: List<String>, channel: Channel<Int>) {
    for (i in channel) record(path.calledFrom(here()))
}

class Completion : Continuation<Unit>, Serializable {
    override val context: CoroutineContext get() = EmptyCoroutineContext
    override fun resumeWith(result: Result<Unit>) = result.getOrThrow()
}

/** No constructor runs when a continuation is read from a file. */
fun fromFile() {
    val block: suspend () -> Unit = { record(listOf(here(), "unknown")) }
    val file = ByteArrayOutputStream()
    ObjectOutputStream(file).writeObject(block.createCoroutineUnintercepted(Completion()))
    val read = ObjectInputStream(ByteArrayInputStream(file.toByteArray())).readObject()
    @Suppress("UNCHECKED_CAST")
    (read as Continuation<Unit>).resume(Unit)
}

fun main() {
    fromFile()
    runBlocking {
        repeat(8) {
            val start = here(); launch(Dispatchers.Default) {
                orderHandler(startedAt(start).calledFrom(here()))
                searchHandler(startedAt(start).calledFrom(here()))
                recursion(startedAt(start).calledFrom(here()), 9)
                catching(startedAt(start).calledFrom(here()))
                children(startedAt(start).calledFrom(here()))
                generator(startedAt(start).calledFrom(here()))
                consumer(startedAt(start).calledFrom(here()))
            }
            val other = here(); launch(Dispatchers.Unconfined) { orderHandler(startedAt(other).calledFrom(here())) }
        }
        val channel = Channel<Int>()
        val start = here(); launch(Dispatchers.Default) { receiver(startedAt(start).calledFrom(here()), channel) }
        for (i in 1..50) channel.send(i)
        channel.close()
    }
    val base = Class.forName("kotlin.coroutines.jvm.internal.BaseContinuationImpl")
    println("version ${ObjectStreamClass.lookup(base).serialVersionUID}")
    expected.forEach { (path, count) -> println("$count|$path") }
}
