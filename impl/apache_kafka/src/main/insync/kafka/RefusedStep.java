package insync.kafka;

import insync.conform.Refused;

/** A step that Kafka did not take, and whether it left something: such a refusal is none. */
final class RefusedStep {
  private RefusedStep() {}

  /** Whether anything that is told of a world is otherwise after a step that Kafka refused. */
  static boolean changes(World before, World draft) {
    draft.settle();
    return !Snapshot.withoutQuestions(before).equals(Snapshot.withoutQuestions(draft));
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
