import io.trino.sql.parser.ParsingException;
import io.trino.sql.parser.SqlParser;
import io.trino.sql.tree.Node;
import io.trino.sql.tree.StringLiteral;
import java.nio.charset.StandardCharsets;
import java.util.TreeSet;

/**
 * Parses statements of Trino for a test. They come on stdin, each ended by a NUL; the answer has for each a line "ok" or
 * "fault TEXT", and then a line "literal HEX" for each string literal that is in one of them.
 */
class Parse {
    public static void main(String[] args) throws Exception {
        var parser = new SqlParser();
        var literals = new TreeSet<String>();
        var text = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
        for (var statement : text.split("\0")) {
            try {
                collect(parser.createStatement(statement), literals);
                System.out.println("ok");
            } catch (ParsingException e) {
                System.out.println("fault " + e.getMessage().replace('\n', ' '));
            }
        }
        for (var literal : literals) {
            System.out.println("literal " + java.util.HexFormat.of().formatHex(literal.getBytes(StandardCharsets.UTF_8)));
        }
    }

    static void collect(Node node, TreeSet<String> literals) {
        if (node instanceof StringLiteral literal) {
            literals.add(literal.getValue());
        }
        node.getChildren().forEach(child -> collect(child, literals));
    }
}
