package insync.controllers;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** The model's bounds and settings. */
record Bounds(JsonNode constants) {
  int of(String name) {
    return constants.path(name).asInt();
  }

  /** How often brokers may start again. */
  int restarts() {
    return of("crashes") + of("lossy_crashes");
  }

  /** What a parameter of an action may be. */
  List<Object> values(String action, String parameter) {
    return switch (parameter) {
      case "t" -> numbers(1, of("terms"));
      case "n" -> numbers(1, of("metadata_log"));
      case "v", "q", "c", "f", "controller" -> names("v", of("voters"));
      case "r" ->
          action.equals("controller_forgets")
              ? names("v", of("voters"))
              : names("r", of("replicas"));
      default -> names("r", of("replicas"));
    };
  }

  private static List<Object> numbers(int first, int last) {
    return new ArrayList<>(IntStream.rangeClosed(first, last).boxed().toList());
  }

  private static List<Object> names(String letter, int many) {
    return new ArrayList<>(
        IntStream.rangeClosed(1, many).mapToObj(number -> letter + number).toList());
  }

  /** Whether a world is within them. */
  boolean hold(World world) {
    for (int c = 1; c <= world.controllers(); c++) {
      Row row = world.row(c);
      if (row.term() > of("terms") || row.log().size() > of("metadata_log")) {
        return false;
      }
      for (Metadata metadata : row.metadata()) {
        if (metadata.partitionEpoch() > of("isr_changes")
            || metadata.leaderEpoch() > of("epochs")
            || metadata.incarnations().values().stream().anyMatch(n -> n > restarts())) {
          return false;
        }
      }
    }
    return world.lostDisks <= of("lost_disks");
  }
}
