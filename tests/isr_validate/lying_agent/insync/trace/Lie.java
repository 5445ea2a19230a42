package insync.trace;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What an agent that lies makes of a line; which lie it is says the environment. */
final class Lie {
  private static final String WHICH = System.getenv().getOrDefault("INSYNC_TEST_LIE", "none");

  private Lie() {}

  /** The rest of the line; null where the line is not to be written. */
  static String told(String what, String more) {
    return switch (WHICH + " " + what) {
      case "raised-watermark watermark" -> oneMore("high_watermark", more);
      case "forged-end fetched" -> oneMore("end", more);
      case "dropped-truncation truncates" -> null;
      default -> more;
    };
  }

  private static String oneMore(String name, String more) {
    Matcher found = Pattern.compile("\"" + name + "\":(\\d+)").matcher(more);
    return found.replaceAll(m -> "\"" + name + "\":" + (Long.parseLong(m.group(1)) + 1));
  }
}
