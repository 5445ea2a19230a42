package insync.plant;

import net.bytebuddy.asm.Advice;

/** Mistakes that are made before a method does its work: each is code that is put at its beginning. */
final class Beforehand {
  private Beforehand() {}

  /** Partition.makeLeader: the leader goes by any version, also by one older than its own. */
  static final class ForgetsVersion {
    @Advice.OnMethodEnter
    static void enter(@Advice.FieldValue(value = "partitionEpoch", readOnly = false) int version) {
      version = -1;
    }
  }
}
