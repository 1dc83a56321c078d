package io.lucce.programs;

import java.util.stream.Stream;

/** Constructs of language and library behind JDK 11: see {@link Constructs}. */
enum NewerConstructs implements Constructs.Construct {
    RECORD { public Object make(int i) { return new Pair("first", i); } },
    RECORD_TEXT { public Object make(int i) { return new Pair("first", i).toString(); } },
    ENUM_SWITCH { public Object make(int i) {
        return switch (Constructs.Color.values()[i % 3]) { case RED -> new Object(); case GREEN -> "green"; case BLUE -> i; };
    } },
    STRING_SWITCH { public Object make(int i) {
        return switch (Constructs.Data.WORDS[i % 4]) { case "one" -> new int[1]; case "two" -> new int[2]; default -> new int[9]; };
    } },
    SEALED { public Object make(int i) {
        Shape shape = i % 2 == 0 ? new Circle(i) : new Square(i);
        return shape instanceof Circle circle ? circle.radius() : shape;
    } },
    CONCAT_OBJECT { public Object make(int i) { return "thing " + new Pair("x", i) + "!"; } },
    LINES { public Object make(int i) { return "a\nb\nc".lines().toList(); } },
    FORMATTED { public Object make(int i) { return "%x-%08d".formatted(i, i); } },
    TEXT_BLOCK { public Object make(int i) { return """
            a %d
            b
            """.formatted(i).indent(2); } },
    GET_RECORD { public Object make(int i) { return Pair.class.getRecordComponents(); } },
    STREAM_FLAT { public Object make(int i) { return Stream.of(1, 2).flatMap(x -> Stream.of(x, x)).toList(); } };

    record Pair(Object first, int second) {}

    sealed interface Shape permits Circle, Square {}

    record Circle(double radius) implements Shape {}

    record Square(double side) implements Shape {}

    @Override
    public boolean isRare() {
        return false;
    }
}
