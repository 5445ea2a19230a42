package insync.found.fix;

import java.util.Map;
import net.bytebuddy.asm.Advice;
import org.apache.kafka.controller.NewMinimum;
import org.apache.kafka.image.TopicImage;
import org.apache.kafka.metadata.PartitionRegistration;

/**
 * A change of min.insync.replicas, which comes with a ClearElrRecord, is a new partition epoch of
 * each partition that it is for: at the controller, and at those who read its records.
 */
public final class MinimumInNewVersion {
  private MinimumInNewVersion() {}

  /** For ReplicationControlManager.removeTopicElrs. */
  public static final class Controller {
    private Controller() {}

    /** Before Kafka's own change, after which an ELR would be gone. */
    @Advice.OnMethodEnter
    public static void enter(@Advice.Argument(0) Object topic)
        throws ReflectiveOperationException {
      NewMinimum.raisePartitionEpochs(topic);
    }
  }

  /** For TopicDelta.maybeClearElr. */
  public static final class Image {
    private Image() {}

    /** What Kafka leaves as it is. */
    @Advice.OnMethodEnter
    public static void enter(
        @Advice.FieldValue("image") TopicImage image,
        @Advice.FieldValue("partitionChanges") Map<Integer, PartitionRegistration> changes,
        @Advice.Argument(0) int partitionId,
        @Advice.Argument(1) PartitionRegistration partition) {
      if (NewMinimum.isLeftAsItIs(partition)) {
        changes.put(partitionId, NewMinimum.inNewVersion(image.id(), partitionId, partition));
      }
    }
  }
}
