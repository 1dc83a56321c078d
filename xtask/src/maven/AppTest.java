import io.lucce.junit.AllocatesAtMost;
import org.junit.jupiter.api.Test;

class AppTest {
    static Object made;

    /** 16 bytes of header, 100 bytes, filled up to a multiple of 8. */
    static void make() {
        made = new byte[100];
    }

    @Test
    @AllocatesAtMost(bytes = 120, objects = 1)
    void fits() {
        make();
    }

    @Test
    @AllocatesAtMost(bytes = 119)
    void doesNotFit() {
        make();
    }
}
