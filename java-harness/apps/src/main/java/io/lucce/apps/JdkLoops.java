package io.lucce.apps;

import java.io.StringReader;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.zip.CRC32;
import javax.xml.transform.Templates;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.stream.StreamResult;
import javax.xml.transform.stream.StreamSource;

/**
 * Work of one thread in code of the JDK alone: {@code JdkLoops [OPTIONS] streams|text|xslt|maps}. What an agent
 * costs there is what all programs pay.
 */
public final class JdkLoops {
    private JdkLoops() {}

    public static void main(String[] args) throws Exception {
        String what = args[args.length - 1];
        Driver driver = new Driver("JdkLoops", args);
        driver.run(work(what, driver));
    }

    private static Driver.Work work(String what, Driver driver) throws Exception {
        switch (what) {
            case "streams":
                return checksum -> streams(driver.scaled(16_000), checksum);
            case "text":
                return checksum -> text(driver.scaled(100_000), checksum);
            case "xslt":
                return xslt(driver.scaled(100));
            case "maps":
                return checksum -> maps(driver.scaled(240), checksum);
            default:
                throw new IllegalArgumentException(what);
        }
    }

    private static String streams(int rounds, CRC32 checksum) {
        for (int round = 0; round < rounds; round++) {
            int seed = round;
            Map<Integer, List<String>> groups = IntStream.range(0, 300)
                    .map(n -> n * 31 + seed)
                    .filter(n -> n % 3 != 0)
                    .boxed()
                    .map(n -> "item " + n)
                    .sorted()
                    .collect(Collectors.groupingBy(String::length));
            Driver.add(checksum, groups.values().stream().mapToInt(List::size).sum());
        }
        return rounds + " pipelines of 300";
    }

    private static String text(int lines, CRC32 checksum) {
        Pattern pattern = Pattern.compile("(\\w+)=(\\d+);\\s*");
        long sum = 0;
        for (int n = 0; n < lines; n++) {
            String line = String.format(Locale.ROOT, "alpha=%d; beta=%05d; gamma=%x;", n, n % 977, n);
            Matcher matcher = pattern.matcher(line);
            while (matcher.find()) {
                sum += Long.parseLong(matcher.group(2)) + matcher.group(1).toUpperCase(Locale.ROOT).length();
            }
            sum += line.replace(';', ',').split(",").length;
        }
        Driver.add(checksum, sum);
        return lines + " lines";
    }

    private static Driver.Work xslt(int rounds) throws Exception {
        StringBuilder document = new StringBuilder("<orders>");
        for (int n = 0; n < 400; n++) {
            document.append("<order id='").append(n).append("'><item price='").append(n % 37).append("'>thing ")
                    .append(n).append("</item></order>");
        }
        String xml = document.append("</orders>").toString();
        String sheet = "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>"
                + "<xsl:template match='/orders'><list total='{sum(order/item/@price)}'>"
                + "<xsl:for-each select='order[item/@price &gt; 10]'><xsl:sort select='item/@price' data-type='number'/>"
                + "<row><xsl:value-of select='concat(@id, \": \", item)'/></row></xsl:for-each></list>"
                + "</xsl:template></xsl:stylesheet>";
        Templates templates =
                TransformerFactory.newInstance().newTemplates(new StreamSource(new StringReader(sheet)));
        return checksum -> {
            for (int round = 0; round < rounds; round++) {
                StringWriter out = new StringWriter();
                templates.newTransformer()
                        .transform(new StreamSource(new StringReader(xml)), new StreamResult(out));
                Driver.add(checksum, out.toString().hashCode());
            }
            return rounds + " transformations";
        };
    }

    private static String maps(int rounds, CRC32 checksum) {
        for (int round = 0; round < rounds; round++) {
            Map<String, List<Integer>> map = new TreeMap<>();
            for (int n = 0; n < 6_000; n++) {
                map.computeIfAbsent(Integer.toString(n * 7919 % 1013, 36), key -> new ArrayList<>()).add(n);
            }
            long sum = 0;
            for (Map.Entry<String, List<Integer>> entry : map.entrySet()) {
                for (Integer n : entry.getValue()) {
                    sum += n ^ entry.getKey().hashCode();
                }
            }
            Driver.add(checksum, sum);
        }
        return rounds + " maps";
    }
}
