package insync.kafka;

import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.metadata.PartitionRegistration;

/**
 * Metadata up to some record, what they say of the partition, of min.insync.replicas and of who is
 * away, and who has yet to apply something of them.
 */
record Image(
    int end, PartitionRegistration partition, int minimum, Set<Integer> away, Set<Integer> readers) {

  /** The same, which this broker does not apply; null once nobody will. */
  Image without(int broker) {
    Set<Integer> others = new TreeSet<>(readers);
    others.remove(broker);
    return others.isEmpty() ? null : new Image(end, partition, minimum, away, others);
  }
}
