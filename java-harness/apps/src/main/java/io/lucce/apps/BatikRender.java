package io.lucce.apps;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.zip.CRC32;
import javax.imageio.ImageIO;
import org.apache.batik.transcoder.TranscoderInput;
import org.apache.batik.transcoder.TranscoderOutput;
import org.apache.batik.transcoder.image.PNGTranscoder;

/** Renders generated drawings (paths, gradients, filters, clips, styles; no text) from SVG to PNG. */
public final class BatikRender {
    private final Driver driver;

    private BatikRender(Driver driver) {
        this.driver = driver;
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver("BatikRender", args);
        driver.run(new BatikRender(driver)::iteration);
    }

    private String iteration(CRC32 checksum) throws Exception {
        int drawings = driver.scaled(8);
        List<Callable<byte[]>> tasks = new ArrayList<>();
        for (int i = 0; i < drawings; i++) {
            int n = i;
            tasks.add(() -> render(drawing(n, 250)));
        }
        long bytes = 0;
        for (byte[] png : driver.parallel(tasks)) {
            checksum.update(png);
            bytes += png.length;
            if (ImageIO.read(new ByteArrayInputStream(png)).getWidth() != 600) {
                throw new IllegalStateException("not the image that was asked for");
            }
        }
        return drawings + " drawings, " + bytes + " bytes of PNG";
    }

    private static byte[] render(String svg) throws Exception {
        ByteArrayOutputStream png = new ByteArrayOutputStream();
        PNGTranscoder transcoder = new PNGTranscoder();
        transcoder.addTranscodingHint(PNGTranscoder.KEY_WIDTH, 600f);
        transcoder.transcode(new TranscoderInput(new StringReader(svg)), new TranscoderOutput(png));
        return png.toByteArray();
    }

    private static String drawing(int seed, int shapes) {
        Random random = new Random(seed);
        StringBuilder svg = new StringBuilder(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" width=\"400\" height=\"400\" viewBox=\"0 0 400 400\">\n"
                + "<style type=\"text/css\">.thin { stroke-width: 0.5 } g > path { stroke: #333 } .soft { opacity: 0.6 }</style>\n"
                + "<defs>\n"
                + "<linearGradient id=\"line\"><stop offset=\"0\" stop-color=\"#fc0\"/><stop offset=\"1\" stop-color=\"#06c\"/></linearGradient>\n"
                + "<radialGradient id=\"round\"><stop offset=\"0\" stop-color=\"white\"/><stop offset=\"1\" stop-color=\"#900\"/></radialGradient>\n"
                + "<filter id=\"blur\"><feGaussianBlur stdDeviation=\"2\"/><feOffset dx=\"2\" dy=\"2\"/></filter>\n"
                + "<clipPath id=\"clip\"><circle cx=\"200\" cy=\"200\" r=\"190\"/></clipPath>\n"
                + "<symbol id=\"star\" viewBox=\"0 0 20 20\"><path d=\"M10 0 L13 7 L20 8 L15 13 L16 20 L10 16 L4 20 L5 13 L0 8 L7 7 Z\"/></symbol>\n"
                + "</defs>\n"
                + "<rect width=\"400\" height=\"400\" fill=\"#eee\"/><g clip-path=\"url(#clip)\">\n");
        String[] fills = {"url(#line)", "url(#round)", "#8a2be2", "none", "rgb(20, 120, 60)"};
        for (int i = 0; i < shapes; i++) {
            int x = random.nextInt(400);
            int y = random.nextInt(400);
            String fill = fills[random.nextInt(fills.length)];
            switch (i % 5) {
                case 0:
                    svg.append("<circle class='soft' cx='").append(x).append("' cy='").append(y).append("' r='").append(5 + random.nextInt(30)).append("' fill='").append(fill).append("'/>");
                    break;
                case 1:
                    svg.append("<path class='thin' fill='").append(fill).append("' d='M").append(x).append(' ').append(y).append(" q").append(random.nextInt(80)).append(' ')
                            .append(random.nextInt(80)).append(" 40 0 t20 ").append(random.nextInt(40)).append(" a20 30 15 1 0 30 10 z'/>");
                    break;
                case 2:
                    svg.append("<rect transform='rotate(").append(random.nextInt(360)).append(' ').append(x).append(' ').append(y).append(")' x='").append(x).append("' y='").append(y)
                            .append("' width='40' height='25' rx='5' fill='").append(fill).append("' stroke='black' stroke-dasharray='4 2'/>");
                    break;
                case 3:
                    svg.append("<use xlink:href='#star' x='").append(x).append("' y='").append(y).append("' width='30' height='30' fill='").append(fill).append("'/>");
                    break;
                default:
                    svg.append("<ellipse cx='").append(x).append("' cy='").append(y).append("' rx='20' ry='12' fill='").append(fill).append(i % 25 == 4 ? "' filter='url(#blur)'/>" : "'/>");
            }
            svg.append('\n');
        }
        return svg.append("</g></svg>").toString();
    }
}
