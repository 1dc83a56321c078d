package io.lucce.apps;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.StringReader;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.zip.CRC32;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.sax.SAXResult;
import javax.xml.transform.stream.StreamSource;
import org.apache.fop.apps.FOUserAgent;
import org.apache.fop.apps.Fop;
import org.apache.fop.apps.FopFactory;
import org.apache.fop.apps.MimeConstants;

/** Renders a generated report of text, tables, lists and drawings (XSL-FO) to PDF. */
public final class FopRender {
    private final Driver driver;
    private final FopFactory factory = FopFactory.newInstance(new File(".").toURI());

    private FopRender(Driver driver) {
        this.driver = driver;
        java.util.logging.LogManager.getLogManager().reset();
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver("FopRender", args);
        driver.run(new FopRender(driver)::iteration);
    }

    private static final class Rendered {
        final int pages;
        final int bytes;

        Rendered(int pages, int bytes) {
            this.pages = pages;
            this.bytes = bytes;
        }
    }

    private String iteration(CRC32 checksum) throws Exception {
        int documents = driver.scaled(8);
        List<Callable<Rendered>> tasks = new ArrayList<>();
        for (int i = 0; i < documents; i++) {
            int n = i;
            tasks.add(() -> render(report(n, 30)));
        }
        int pages = 0;
        int bytes = 0;
        for (Rendered rendered : driver.parallel(tasks)) {
            // A PDF carries an identity of its own: its length does not.
            Driver.add(checksum, rendered.pages);
            Driver.add(checksum, rendered.bytes);
            pages += rendered.pages;
            bytes += rendered.bytes;
        }
        return documents + " documents, " + pages + " pages, " + bytes + " bytes of PDF";
    }

    private Rendered render(String fo) throws Exception {
        ByteArrayOutputStream pdf = new ByteArrayOutputStream();
        FOUserAgent agent = factory.newFOUserAgent();
        agent.setCreationDate(new Date(0));
        Fop fop = factory.newFop(MimeConstants.MIME_PDF, agent, pdf);
        TransformerFactory.newInstance().newTransformer()
                .transform(new StreamSource(new StringReader(fo)), new SAXResult(fop.getDefaultHandler()));
        return new Rendered(fop.getResults().getPageCount(), pdf.size());
    }

    private static final String[] WORDS = ("context calling number frame stack method class trace allocation encoding graph"
            + " version anchor transition thread event program machine virtual every precise little").split(" ");

    private static String sentence(Random random, int words) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < words; i++) {
            text.append(i == 0 ? "" : " ").append(WORDS[random.nextInt(WORDS.length)]);
        }
        return text.append('.').toString();
    }

    private static String report(int seed, int sections) {
        Random random = new Random(seed);
        StringBuilder fo = new StringBuilder(
                "<fo:root xmlns:fo=\"http://www.w3.org/1999/XSL/Format\" font-family=\"Helvetica\" font-size=\"10pt\">\n"
                + "<fo:layout-master-set><fo:simple-page-master master-name=\"page\" page-width=\"210mm\" page-height=\"297mm\" margin=\"20mm\">\n"
                + "<fo:region-body margin-top=\"10mm\" margin-bottom=\"10mm\" column-count=\"2\"/><fo:region-before extent=\"8mm\"/><fo:region-after extent=\"8mm\"/>\n"
                + "</fo:simple-page-master></fo:layout-master-set>\n"
                + "<fo:page-sequence master-reference=\"page\">\n"
                + "<fo:static-content flow-name=\"xsl-region-before\"><fo:block text-align=\"end\">Report</fo:block></fo:static-content>\n"
                + "<fo:static-content flow-name=\"xsl-region-after\"><fo:block text-align=\"center\"><fo:page-number/></fo:block></fo:static-content>\n"
                + "<fo:flow flow-name=\"xsl-region-body\">\n");
        for (int section = 0; section < sections; section++) {
            fo.append("<fo:block id='s").append(section).append("' font-size='14pt' font-weight='bold' space-before='4mm' keep-with-next='always'>Section ")
                    .append(section).append("</fo:block>\n");
            for (int paragraph = 0; paragraph < 3; paragraph++) {
                fo.append("<fo:block text-align='justify' space-after='2mm' hyphenate='false'>").append(sentence(random, 60))
                        .append(" See <fo:basic-link internal-destination='s").append(random.nextInt(sections)).append("' color='blue'>page <fo:page-number-citation ref-id='s")
                        .append(random.nextInt(sections)).append("'/></fo:basic-link>.</fo:block>\n");
            }
            fo.append("<fo:table table-layout='fixed' width='100%' border='0.5pt solid black'><fo:table-column column-width='proportional-column-width(2)'/>")
                    .append("<fo:table-column column-width='proportional-column-width(1)'/><fo:table-body>");
            for (int row = 0; row < 8; row++) {
                fo.append("<fo:table-row><fo:table-cell border='0.2pt solid gray' padding='1mm'><fo:block>").append(sentence(random, 6))
                        .append("</fo:block></fo:table-cell><fo:table-cell padding='1mm'><fo:block text-align='end'>").append(random.nextInt(100_000))
                        .append("</fo:block></fo:table-cell></fo:table-row>");
            }
            fo.append("</fo:table-body></fo:table>\n<fo:list-block provisional-distance-between-starts='6mm'>");
            for (int item = 1; item < 5; item++) {
                fo.append("<fo:list-item><fo:list-item-label end-indent='label-end()'><fo:block>").append(item)
                        .append(".</fo:block></fo:list-item-label><fo:list-item-body start-indent='body-start()'><fo:block>")
                        .append(sentence(random, 12)).append("</fo:block></fo:list-item-body></fo:list-item>");
            }
            fo.append("</fo:list-block>\n<fo:block><fo:instream-foreign-object><svg xmlns='http://www.w3.org/2000/svg' width='200' height='60'>");
            for (int bar = 0; bar < 12; bar++) {
                int height = 5 + random.nextInt(50);
                fo.append("<rect x='").append(bar * 16).append("' y='").append(60 - height).append("' width='12' height='").append(height).append("' fill='#4682b4'/>");
            }
            fo.append("</svg></fo:instream-foreign-object></fo:block>\n");
        }
        return fo.append("</fo:flow></fo:page-sequence></fo:root>").toString();
    }
}
