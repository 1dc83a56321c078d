package io.lucce.agents;

import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.mockStatic;
import static org.mockito.Mockito.spy;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import java.util.ArrayList;
import java.util.List;
import org.mockito.MockMakers;
import org.mockito.MockSettings;
import org.mockito.MockedStatic;
import org.mockito.Mockito;

/** Mocks of interfaces and classes, spies, and (but for {@code subclass}) of static methods. */
public final class Mocks {
    static volatile Object sink;

    private Mocks() {}

    interface Service {
        String name(int n);

        List<String> all();
    }

    static class Greeter {
        String greet(String whom) {
            return "hello " + whom + new StringBuilder().append(whom.length());
        }
    }

    static final class Statics {
        private Statics() {}

        static String text() {
            return "text" + new Object().getClass();
        }
    }

    public static void main(String[] how) {
        boolean subclass = how.length > 0 && how[0].equals("subclass");
        String maker = subclass ? MockMakers.SUBCLASS : MockMakers.INLINE;
        for (int i = 0; i < 3; i++) {
            interfaces(Mockito.withSettings().mockMaker(maker));
            classes(Mockito.withSettings().mockMaker(maker));
        }
        if (!subclass) {
            statics();
        }
        System.out.println("OK " + Statics.text());
    }

    private static void interfaces(MockSettings settings) {
        Service service = mock(Service.class, settings);
        when(service.name(3)).thenReturn("three");
        when(service.all()).thenAnswer(call -> new ArrayList<>(List.of("a")));
        sink = service.name(3) + service.all();
        verify(service).name(3);
        doThrow(new IllegalStateException("refused")).when(service).all();
        try {
            service.all();
        } catch (IllegalStateException expected) {
            sink = expected.getStackTrace();
        }
    }

    private static void classes(MockSettings settings) {
        Greeter greeter = mock(Greeter.class, settings.spiedInstance(new Greeter()).defaultAnswer(
                Mockito.CALLS_REAL_METHODS));
        sink = greeter.greet("you");
        verify(greeter).greet("you");
    }

    private static void statics() {
        Greeter greeter = spy(new Greeter());
        sink = greeter.greet("me");
        try (MockedStatic<Statics> mocked = mockStatic(Statics.class)) {
            mocked.when(Statics::text).thenReturn("mocked");
            sink = Statics.text();
        }
    }
}
