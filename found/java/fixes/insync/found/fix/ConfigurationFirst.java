package insync.found.fix;

import kafka.server.metadata.DynamicConfigPublisher;
import net.bytebuddy.asm.Advice;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;

/**
 * BrokerMetadataPublisher.onMetadataUpdate applies what a delta changes in the configuration before
 * what it changes in partitions, and not only after it.
 */
public final class ConfigurationFirst {
  private ConfigurationFirst() {}

  /**
   * Not for the first image: the managers are not up, and logs are loaded with their configuration.
   */
  @Advice.OnMethodEnter
  public static void enter(
      @Advice.FieldValue("dynamicConfigPublisher") DynamicConfigPublisher configuration,
      @Advice.FieldValue("_firstPublish") boolean first,
      @Advice.Argument(0) MetadataDelta delta,
      @Advice.Argument(1) MetadataImage image) {
    if (!first) {
      configuration.onMetadataUpdate(delta, image);
    }
  }
}
