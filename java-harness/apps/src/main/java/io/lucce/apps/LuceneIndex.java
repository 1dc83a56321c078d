package io.lucce.apps;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import java.util.zip.CRC32;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.en.EnglishAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.IntPoint;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.MultiTerms;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.queryparser.classic.ParseException;
import org.apache.lucene.queryparser.classic.QueryParser;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.Sort;
import org.apache.lucene.search.SortField;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.apache.lucene.store.Directory;
import org.apache.lucene.util.BytesRef;

/**
 * Indexes the text and source files below a directory, in passages of a few lines, and searches
 * them with words that occur in them.
 */
public final class LuceneIndex {
    private static final int PASSAGE_LINES = 8;
    private static final String[] SUFFIXES = {
        ".java", ".rs", ".md", ".txt", ".toml", ".xml", ".c", ".h", ".py", ".kt", ".scala", ".html"
    };

    private final Driver driver;
    private final List<Path> files;

    private LuceneIndex(Driver driver) {
        this.driver = driver;
        files = Driver.files(driver.directory(), SUFFIXES);
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver("LuceneIndex", args);
        driver.run(new LuceneIndex(driver)::iteration);
    }

    private String iteration(CRC32 checksum) throws Exception {
        try (Directory directory = new ByteBuffersDirectory(); Analyzer analyzer = new EnglishAnalyzer()) {
            int passages = index(directory, analyzer);
            try (DirectoryReader reader = DirectoryReader.open(directory)) {
                List<String> words = frequentWords(reader, driver.scaled(150));
                long hits = 0;
                for (long found : driver.parallel(searches(reader, analyzer, words))) {
                    Driver.add(checksum, found);
                    hits += found;
                }
                Driver.add(checksum, reader.numDocs());
                return files.size() + " files, " + passages + " passages indexed, " + words.size()
                        + " words searched for in 5 ways, " + hits + " hits";
            }
        }
    }

    private int index(Directory directory, Analyzer analyzer) throws Exception {
        try (IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig(analyzer).setRAMBufferSizeMB(4))) {
            List<Callable<Integer>> tasks = new ArrayList<>();
            for (int pass = 0; pass < driver.scaled(2); pass++) {
                for (Path file : files) {
                    tasks.add(() -> indexFile(writer, file));
                }
            }
            int passages = 0;
            for (int count : driver.parallel(tasks)) {
                passages += count;
            }
            writer.forceMerge(1);
            return passages;
        }
    }

    private int indexFile(IndexWriter writer, Path file) throws IOException {
        String[] lines = new String(Files.readAllBytes(file), StandardCharsets.UTF_8).split("\n");
        int passages = 0;
        for (int from = 0; from < lines.length; from += PASSAGE_LINES) {
            int to = Math.min(lines.length, from + PASSAGE_LINES);
            Document document = new Document();
            document.add(new StringField("path", file.toString(), Field.Store.YES));
            document.add(new TextField("text", String.join("\n", List.of(lines).subList(from, to)), Field.Store.YES));
            document.add(new IntPoint("line", from));
            document.add(new StoredField("line", from));
            document.add(new NumericDocValuesField("order", from));
            writer.addDocument(document);
            passages++;
        }
        return passages;
    }

    private static final class Word {
        private final String text;
        private final int documents;

        Word(String text, int documents) {
            this.text = text;
            this.documents = documents;
        }

        String text() {
            return text;
        }

        int documents() {
            return documents;
        }
    }

    private static List<String> frequentWords(DirectoryReader reader, int count) throws IOException {
        List<Word> words = new ArrayList<>();
        Terms terms = MultiTerms.getTerms(reader, "text");
        TermsEnum all = terms.iterator();
        for (BytesRef term = all.next(); term != null; term = all.next()) {
            String text = term.utf8ToString();
            if (text.length() > 3 && text.chars().allMatch(Character::isLetter)) {
                words.add(new Word(text, all.docFreq()));
            }
        }
        words.sort(Comparator.comparingInt(Word::documents).reversed().thenComparing(Word::text));
        return words.stream().limit(count).map(Word::text).collect(Collectors.toList());
    }

    private List<Callable<Long>> searches(DirectoryReader reader, Analyzer analyzer, List<String> words) {
        List<Callable<Long>> searches = new ArrayList<>();
        for (int i = 0; i < words.size(); i++) {
            String word = words.get(i);
            String other = words.get((i * 7 + 3) % words.size());
            searches.add(() -> search(new IndexSearcher(reader), analyzer, word, other));
        }
        return searches;
    }

    private static long search(IndexSearcher searcher, Analyzer analyzer, String word, String other)
            throws IOException, ParseException {
        QueryParser parser = new QueryParser("text", analyzer);
        String[] texts = {
            word, "+" + word + " -" + other, "\"" + word + " " + other + "\"~6", word.substring(0, 3) + "*", other + "~1 " + word
        };
        Sort byLine = new Sort(new SortField("order", SortField.Type.LONG), SortField.FIELD_SCORE);
        long hits = 0;
        for (String text : texts) {
            Query query = parser.parse(text);
            hits += searcher.count(query);
            TopDocs best = searcher.search(query, 10);
            for (ScoreDoc hit : best.scoreDocs) {
                hits += searcher.storedFields().document(hit.doc).get("text").isEmpty() ? 0 : 1;
            }
            hits += searcher.search(query, 20, byLine).scoreDocs.length;
        }
        return hits;
    }
}
