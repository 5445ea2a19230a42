package insync.found;

import java.nio.file.Files;
import java.nio.file.Path;

/** A story that ends as its first argument says; without Kafka, whose version a resource has. */
public final class Endings {
  private Endings() {}

  /** Plays it. */
  public static void main(String[] arguments) throws Exception {
    Story.play(Endings.class, arguments, control -> run(arguments));
  }

  private static Story.Outcome run(String[] arguments) throws Exception {
    String ending = arguments[0];
    switch (ending) {
      case "not tried":
        throw new NotTried("r2 did not come");
      case "throws":
        throw new IllegalStateException("no such step");
      case "lost, then throws":
        Story.outcome(true, false, "the log of the leader, r2");
        throw new IllegalStateException("at the end");
      case "fails":
        throw new StackOverflowError();
      case "killed":
        Runtime.getRuntime().halt(137);
        throw new AssertionError();
      case "ends early":
        System.exit(0);
        throw new AssertionError();
      case "no folder":
        Files.createTempDirectory("insync-found-");
        return Story.outcome(true, true, "r1's log");
      case "folder has vanished":
        Folders.remove(Path.of(arguments[1]));
        return Story.outcome(true, true, "r1's log");
      default:
        return Story.outcome(true, ending.equals("held"), "the log of the leader, r2");
    }
  }
}
