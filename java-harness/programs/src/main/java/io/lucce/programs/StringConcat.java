package io.lucce.programs;

import io.lucce.CallContext;

/** String concatenation through invokedynamic, which calls toString() methods of the program. */
public final class StringConcat {
    static Object kept;

    public static void main(String[] args) throws Exception {
        body();
        Fresh.run(StringConcat.class, "body", Repeats.of(10));
        for (int i = 0; i < Repeats.of(200); i++) {
            body();
        }
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }

    static final class Text {
        private final int n;

        Text(int n) {
            this.n = n;
        }

        @Override
        public String toString() {
            kept = new byte[190];
            Check.that(CallContext.current(), new Throwable());
            if (n == 7) {
                throw new IllegalStateException("in toString()");
            }
            return n > 100 ? "[" + new Text(n - 100) + "]" : "t" + n;
        }
    }

    static void body() {
        Check.equal("a1t1", "a" + 1 + new Text(1));
        Check.that(CallContext.current(), new Throwable());
        Check.equal("t1-t2-t3", new Text(1) + "-" + new Text(2) + "-" + new Text(3));
        Check.that(CallContext.current(), new Throwable());
        Check.equal("x[[t5]]y", "x" + new Text(205) + "y");
        Check.that(CallContext.current(), new Throwable());
        String text = "";
        for (int i = 0; i < 5; i++) {
            text += new Text(i);
            text += i * 2L + 'c' + 1.5f + "" + (i % 2 == 0);
        }
        Check.equal(true, text.startsWith("t0"));
        Check.that(CallContext.current(), new Throwable());
        try {
            kept = "before" + new Text(7) + "after";
            Check.wrong("must throw");
        } catch (IllegalStateException e) {
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal("null t4 \u0001\u0002", null + " " + new Text(4) + " \u0001\u0002");
        Check.equal(27, many(1, 2L, 3f, 4d, 'c', (byte) 5, true, "s").length());
        Check.that(CallContext.current(), new Throwable());
        Check.equal("t8|t9", String.format("%s|%s", new Text(8), new Text(9)));
        Check.equal("t8", String.valueOf(new Text(8)));
        Check.equal("[t1, t2]", java.util.List.of(new Text(1), new Text(2)).toString());
        Check.equal("t1,t2", String.join(",", String.valueOf(new Text(1)), "" + new Text(2)));
        Check.that(CallContext.current(), new Throwable());
    }

    private static String many(int a, long b, float c, double d, char e, byte f, boolean g, String h) {
        Check.that(CallContext.current(), new Throwable());
        return a + "," + b + "," + c + "," + d + "," + e + "," + f + "," + g + "," + h + "," + new Text(6) + "," + a;
    }
}
