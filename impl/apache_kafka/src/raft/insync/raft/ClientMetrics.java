package insync.raft;

import java.util.List;
import java.util.Set;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.Metrics;

/**
 * The metrics of a client, which nobody reads and which all its copies share. A leader registers
 * more when it is elected, so those that another copy has left there are taken away before.
 */
public final class ClientMetrics {
  /** Those of a leader (KafkaRaftMetrics.addLeaderMetrics). An only voter leads as soon as it starts. */
  private static final Set<String> OF_LEADERS =
      Set.of("number-of-observers", "uncommitted-voter-change");

  private final Metrics metrics = new Metrics();
  private List<MetricName> names;

  /** Where the client registers them. */
  public Metrics registry() {
    return metrics;
  }

  /** Those that there are now belong to a client in any state, but for those of a leader. */
  public void keep() {
    names =
        metrics.metrics().keySet().stream()
            .filter(name -> !OF_LEADERS.contains(name.name()))
            .toList();
  }

  /** Take the others away. */
  public void reset() {
    List.copyOf(metrics.metrics().keySet()).stream()
        .filter(name -> !names.contains(name))
        .forEach(metrics::removeMetric);
  }
}
