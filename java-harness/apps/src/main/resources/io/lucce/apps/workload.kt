package generated.p%1$d

sealed interface Expr<out T : Number>
data class Const<T : Number>(val value: T) : Expr<T>
data class Add<T : Number>(val left: Expr<T>, val right: Expr<T>) : Expr<T>
data class Mul<T : Number>(val left: Expr<T>, val right: Expr<T>) : Expr<T>
object Zero : Expr<Nothing>

enum class Mode(val label: String) { FAST("fast") { override fun cost(n: Int) = n }, SLOW("slow") { override fun cost(n: Int) = n * n };
    abstract fun cost(n: Int): Int }

interface Named { val name: String get() = this::class.java.simpleName; fun greet(who: String = "you") = "$name greets $who" }

abstract class Base%1$d(protected val seed: Int) : Named, Comparable<Base%1$d> {
    private val cache by lazy { mutableMapOf<String, List<Int>>() }
    open fun values(key: String): List<Int> = cache.getOrPut(key) { List(seed) { it * key.length }.filter { it %% 3 != 0 } }
    override fun compareTo(other: Base%1$d) = compareValuesBy(this, other, { it.seed }, { it.name })
    operator fun get(index: Int) = values("k$index").sumOf { it }
}

class Derived%1$d(seed: Int, private val mode: Mode = Mode.FAST) : Base%1$d(seed) {
    override fun values(key: String) = super.values(key).map { mode.cost(it) }.sortedDescending()
    inner class Cursor(var at: Int) : Iterator<Int> {
        override fun hasNext() = at < seed
        override fun next() = this@Derived%1$d[at++]
    }
    companion object { @JvmStatic fun of(vararg seeds: Int) = seeds.map { Derived%1$d(it) } }
}

fun <T : Number> eval(expr: Expr<T>): Double = when (expr) {
    is Const -> expr.value.toDouble()
    is Add -> eval(expr.left) + eval(expr.right)
    is Mul -> { val (l, r) = expr; eval(l) * eval(r) }
    Zero -> 0.0
}

inline fun <reified T, R> Iterable<Any?>.collect(crossinline f: (T) -> R): List<R> = buildList { for (x in this@collect) if (x is T) add(f(x)) }

tailrec fun gcd(a: Long, b: Long): Long = if (b == 0L) a else gcd(b, a %% b)

fun numbers() = sequence { var (a, b) = 0L to 1L; while (true) { yield(a); val next = a + b; a = b; b = next } }

fun report(items: Collection<Derived%1$d?>): String = items.filterNotNull().groupBy { it.name }.entries.joinToString("\n") { (k, v) ->
    "$k: ${v.map { it[2] }.fold(0) { s, x -> s + x }} ${v.firstOrNull()?.greet() ?: "none"} ${numbers().take(%1$d + 3).last()}"
}

fun main() {
    val all = Derived%1$d.of(1, 2, 3) + Derived%1$d(4, Mode.valueOf("SLOW"))
    try { println(report(all.shuffled())) } catch (e: IllegalStateException) { throw RuntimeException("${e.message}", e) } finally { println(gcd(12, 18)) }
    println(listOf(1, "a", 2.0, null).collect<Number, String> { "<$it>" } + eval(Add(Const(1), Mul(Const(2), Zero))))
}
