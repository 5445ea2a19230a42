package insync.found.fix;

import net.bytebuddy.asm.Advice;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.controller.ElrIndex;
import org.apache.kafka.controller.NewMinimum;

/**
 * Who leaves an ELR by a ClearElrRecord leaves the controller's index of ELRs by broker. For
 * ReplicationControlManager.removeTopicElrs.
 */
public final class ElrIndexEmptied {
  private ElrIndexEmptied() {}

  /** Before Kafka's own change, after which it would not be known who was in an ELR. */
  @Advice.OnMethodEnter
  public static void enter(
      @Advice.FieldValue("brokersToElrs") Object index, @Advice.Argument(0) Object topic)
      throws ReflectiveOperationException {
    ElrIndex.empty(index, (Uuid) NewMinimum.field(topic, "id"), NewMinimum.parts(topic));
  }
}
