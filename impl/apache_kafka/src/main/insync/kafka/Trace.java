package insync.kafka;

import insync.conform.Refused;

/** What Kafka leaves behind where it takes no step: a refusal with an effect is none. */
final class Trace {
  private Trace() {}

  /** Whether anything that is told of a world is otherwise after a step that Kafka refused. */
  static boolean leaves(World before, World draft) {
    draft.settle();
    return !Snapshot.unasked(before).equals(Snapshot.unasked(draft));
  }

  /**
   * What comes of a step in which something was thrown: where Kafka threw it, the step is refused.
   * Otherwise it goes on to who asked, for the adapter is wrong.
   */
  static Refused failure(Throwable problem) throws Exception {
    Throwable first = problem;
    while (first.getCause() != null) {
      first = first.getCause();
    }
    for (StackTraceElement at : first.getStackTrace()) {
      String type = at.getClassName();
      if (type.startsWith("insync.") || type.endsWith(".HeldController")) {
        break;
      }
      if (type.startsWith("kafka.") || type.startsWith("org.apache.kafka.")) {
        return Refused.failure(first);
      }
    }
    if (problem instanceof Error error) {
      throw error;
    }
    throw (Exception) problem;
  }
}
