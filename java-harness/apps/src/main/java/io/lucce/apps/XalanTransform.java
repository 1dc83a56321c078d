package io.lucce.apps;

import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.zip.CRC32;
import javax.xml.parsers.SAXParserFactory;
import javax.xml.transform.Templates;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.sax.SAXSource;
import javax.xml.transform.stream.StreamResult;
import javax.xml.transform.stream.StreamSource;
import org.xml.sax.InputSource;
import org.xml.sax.XMLReader;

/** Transforms generated documents with Xalan, interpreted and compiled (XSLTC), parsed by Xerces. */
public final class XalanTransform {
    private final Driver driver;
    private final String document;
    private final String stylesheet;

    private XalanTransform(Driver driver) throws Exception {
        this.driver = driver;
        document = document(400);
        try (var in = XalanTransform.class.getResourceAsStream("orders.xsl")) {
            stylesheet = new String(in.readAllBytes(), java.nio.charset.StandardCharsets.UTF_8);
        }
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver("XalanTransform", args);
        driver.run(new XalanTransform(driver)::iteration);
    }

    private String iteration(CRC32 checksum) throws Exception {
        String[] factories = {"org.apache.xalan.processor.TransformerFactoryImpl", "org.apache.xalan.xsltc.trax.TransformerFactoryImpl"};
        int transformations = driver.scaled(16);
        long bytes = 0;
        for (String factory : factories) {
            Templates templates = TransformerFactory.newInstance(factory, null)
                    .newTemplates(new StreamSource(new StringReader(stylesheet)));
            List<Callable<byte[]>> tasks = new ArrayList<>();
            for (int i = 0; i < transformations; i++) {
                int n = i;
                tasks.add(() -> transform(templates, n));
            }
            for (byte[] result : driver.parallel(tasks)) {
                checksum.update(result);
                bytes += result.length;
            }
        }
        return transformations + " transformations interpreted, as many compiled, " + bytes + " bytes written";
    }

    private byte[] transform(Templates templates, int n) throws Exception {
        SAXParserFactory parsers = SAXParserFactory.newInstance("org.apache.xerces.jaxp.SAXParserFactoryImpl", null);
        parsers.setNamespaceAware(true);
        XMLReader reader = parsers.newSAXParser().getXMLReader();
        var transformer = templates.newTransformer();
        transformer.setParameter("pass", n);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        transformer.transform(new SAXSource(reader, new InputSource(new StringReader(document))), new StreamResult(out));
        return out.toByteArray();
    }

    private static String document(int orders) {
        Random random = new Random(7);
        StringBuilder xml = new StringBuilder("<?xml version='1.0'?>\n<orders>\n");
        for (int order = 0; order < orders; order++) {
            xml.append("<order id='").append(order).append("' customer='c").append(random.nextInt(60)).append("'>\n");
            for (int line = random.nextInt(8); line >= 0; line--) {
                xml.append("  <line><item>item").append(random.nextInt(200)).append("</item><quantity>").append(1 + random.nextInt(20))
                        .append("</quantity><price>").append(random.nextInt(10_000) / 100.0).append("</price>")
                        .append("<note>Some text, with &amp; and &lt;, <b>bold <i>nested</i></b> ").append(Long.toString(random.nextLong(), 36))
                        .append("</note></line>\n");
            }
            xml.append("</order>\n");
        }
        return xml.append("</orders>\n").toString();
    }
}
