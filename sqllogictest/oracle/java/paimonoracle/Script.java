package paimonoracle;

import java.io.BufferedReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.TableCommitImpl;
import org.apache.paimon.table.sink.TableWriteImpl;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeJsonParser;

/**
 * Many steps in one virtual machine. Each line is one JSON object with "op":
 *
 * <pre>
 * {"op":"create","table":T,"fields":[{"name":N,"type":TYPE}…],"partition":[…],"primary":[…],"options":{…}}
 * {"op":"write","table":T,"rows":[{…,"_ROW_KIND":"-D"}…],"user":U,"identifier":N,"watermark":N,"options":{…}}
 * {"op":"overwrite","table":T,"partition":{…},"rows":[…],"user":U,"identifier":N}
 * {"op":"compact","table":T,"full":true,"user":U,"identifier":N,"options":{…}}
 * {"op":"alter","table":T,"change":{"add":N,"type":TYPE} | {"drop":N} | {"rename":N,"to":M}
 *                                 | {"retype":N,"type":TYPE} | {"set":K,"value":V} | {"reset":K}}
 * {"op":"tag","table":T,"name":N,"snapshot":N}
 * {"op":"branch","table":T,"name":N,"tag":TAG}
 * {"op":"expect","table":T,"dir":DIR}        snapshot-N.jsonl for every snapshot, latest.jsonl, changelog.jsonl
 * </pre>
 *
 * A step that fails prints "LINE: message" and the script goes on; the count of failures is the exit code.
 */
final class Script {

    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final Catalog catalog;
    private final String db;

    private Script(String warehouse, String db) throws Exception {
        this.catalog = Ops.catalog(warehouse);
        this.db = db;
        catalog.createDatabase(db, true);
    }

    static int run(String warehouse, String db, String file) throws Exception {
        Script script = new Script(warehouse, db);
        int failures = 0;
        int number = 0;
        try (BufferedReader lines = Files.newBufferedReader(Paths.get(file), StandardCharsets.UTF_8)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                number++;
                if (line.trim().isEmpty()) {
                    continue;
                }
                try {
                    script.step(MAPPER.readTree(line));
                } catch (Throwable e) {
                    failures++;
                    System.out.println(number + ": " + Golden.firstLine(e));
                }
            }
        }
        return failures;
    }

    private void step(JsonNode n) throws Exception {
        String table = n.get("table").asText();
        switch (n.get("op").asText()) {
            case "create":
                create(table, n);
                break;
            case "write":
                Ops.write(load(table, n), user(n), identifier(n), watermark(n), rows(n));
                break;
            case "overwrite":
                overwrite(load(table, n), n);
                break;
            case "compact":
                Ops.compact(load(table, n), user(n), identifier(n), n.path("full").asBoolean(true));
                break;
            case "alter":
                catalog.alterTable(Identifier.create(db, table), change(n.get("change")), false);
                break;
            case "tag":
                load(table, n).createTag(n.get("name").asText(), n.get("snapshot").asLong());
                break;
            case "branch":
                load(table, n).createBranch(n.get("name").asText(), n.get("tag").asText());
                break;
            case "expect":
                expect(load(table, n), Paths.get(n.get("dir").asText()));
                break;
            default:
                throw new IllegalArgumentException("unknown op " + n.get("op"));
        }
    }

    private void create(String table, JsonNode n) throws Exception {
        Schema.Builder b = Schema.newBuilder();
        for (JsonNode f : n.get("fields")) {
            b.column(f.get("name").asText(), type(f.get("type")));
        }
        b.partitionKeys(texts(n.path("partition")));
        if (n.has("primary")) {
            b.primaryKey(texts(n.get("primary")));
        }
        b.options(options(n));
        catalog.createTable(Identifier.create(db, table), b.build(), false);
    }

    private void overwrite(FileStoreTable t, JsonNode n) throws Exception {
        Map<String, String> partition = new LinkedHashMap<>();
        n.path("partition").fields().forEachRemaining(e -> partition.put(e.getKey(), e.getValue().asText()));
        try (TableWriteImpl<?> w = t.newWrite(user(n)).withIOManager(Ops.io());
                TableCommitImpl c = t.newCommit(user(n)).withOverwrite(partition)) {
            w.withIgnorePreviousFiles(true);
            Ops.BucketChooser chooser = new Ops.BucketChooser(t, user(n));
            for (String row : rows(n)) {
                chooser.write(w, Rows.parseRow(row, t.rowType()));
            }
            chooser.prepareCommit(identifier(n));
            Ops.commit(c, w.prepareCommit(true, identifier(n)), identifier(n), watermark(n));
        }
    }

    private static void expect(FileStoreTable t, Path dir) throws Exception {
        Files.createDirectories(dir);
        List<Long> ids = Ops.snapshotIds(t);
        for (long id : ids) {
            FileStoreTable at = t.copy(Collections.singletonMap("scan.snapshot-id", "" + id));
            write(dir.resolve("snapshot-" + id + ".jsonl"), Ops.dump(at, null, null, false));
        }
        if (!ids.isEmpty()) {
            write(dir.resolve("latest.jsonl"), Ops.dump(t, null, null, false));
            write(dir.resolve("changelog.jsonl"), Ops.changelog(t, ids.get(0) - 1, ids.get(ids.size() - 1)));
        }
    }

    private static void write(Path file, List<String> lines) throws Exception {
        StringBuilder text = new StringBuilder();
        lines.forEach(l -> text.append(l).append('\n'));
        Files.write(file, text.toString().getBytes(StandardCharsets.UTF_8));
    }

    private FileStoreTable load(String table, JsonNode n) throws Exception {
        Map<String, String> dynamic = n.get("op").asText().equals("create") ? Collections.emptyMap() : options(n);
        return (FileStoreTable) Ops.table(catalog, db, table, dynamic);
    }

    private static SchemaChange change(JsonNode c) {
        if (c.has("add")) {
            return SchemaChange.addColumn(c.get("add").asText(), type(c.get("type")));
        }
        if (c.has("drop")) {
            return SchemaChange.dropColumn(c.get("drop").asText());
        }
        if (c.has("rename")) {
            return SchemaChange.renameColumn(c.get("rename").asText(), c.get("to").asText());
        }
        if (c.has("retype")) {
            return SchemaChange.updateColumnType(c.get("retype").asText(), type(c.get("type")));
        }
        if (c.has("set")) {
            return SchemaChange.setOption(c.get("set").asText(), c.get("value").asText());
        }
        return SchemaChange.removeOption(c.get("reset").asText());
    }

    private static DataType type(JsonNode n) {
        return DataTypeJsonParser.parseDataType(n);
    }

    private static Map<String, String> options(JsonNode n) {
        Map<String, String> o = new LinkedHashMap<>();
        n.path("options").fields().forEachRemaining(e -> o.put(e.getKey(), e.getValue().asText()));
        return o;
    }

    private static List<String> texts(JsonNode n) {
        List<String> out = new ArrayList<>();
        n.forEach(x -> out.add(x.asText()));
        return out;
    }

    private static List<String> rows(JsonNode n) {
        List<String> out = new ArrayList<>();
        for (Iterator<JsonNode> i = n.path("rows").elements(); i.hasNext(); ) {
            out.add(i.next().toString());
        }
        return out;
    }

    private static String user(JsonNode n) {
        return n.path("user").asText("oracle-user");
    }

    private static long identifier(JsonNode n) {
        return n.path("identifier").asLong(Long.MAX_VALUE);
    }

    private static Long watermark(JsonNode n) {
        return n.has("watermark") ? n.get("watermark").asLong() : null;
    }
}
