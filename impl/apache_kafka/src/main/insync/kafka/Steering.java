package insync.kafka;

import java.util.Locale;

/**
 * What the adapter does for the environment, each of which can be turned off to see what it hides.
 */
final class Steering {
  /** eligible.leader.replicas.version=1 (KIP-966). */
  static final boolean ELIGIBLE_REPLICAS = !Boolean.getBoolean("insync.no-elr");

  /**
   * Epoch-cache entries without a record and acknowledgements across epochs of one leader are told
   * as Kafka has them.
   */
  static final boolean EXACT = Boolean.getBoolean("insync.exact");

  /**
   * A leader that would add a follower sees it unfenced even where its own metadata says otherwise.
   */
  static final boolean OWN_VIEW = Boolean.getBoolean("insync.own-view");

  /**
   * An answer that the model has dropped comes at once, and not just before the leader asks again.
   */
  static final boolean PROMPT = Boolean.getBoolean("insync.prompt-answers");

  /** A follower's fetch is answered without being parked (difference A). */
  static final boolean AT_ONCE = Boolean.getBoolean("insync.fetch-at-once");

  /**
   * Nothing is copied before a step, which then cannot be taken back: for walks, to compare with
   * copies.
   */
  static final boolean IN_PLACE = Boolean.getBoolean("insync.in-place");

  /** Producers, followers and consumers ask through KafkaApis, not ReplicaManager alone. */
  static final boolean APIS = Boolean.getBoolean("insync.apis");

  /** No time goes by between two steps of a leader. */
  static final boolean STILL = Boolean.getBoolean("insync.still");

  /** How metadata reaches a broker. */
  enum Reading {
    /** MetadataLoader reads all that is new at once, and publishes one delta. */
    COALESCED,
    /** MetadataLoader reads batch after batch, and publishes a delta for each. */
    BATCHES,
    /** MetadataLoader loads a snapshot of all, where the broker has some of it already. */
    SNAPSHOT,
    /** Neither loader nor publisher: the adapter calls what the publisher calls. */
    DIRECT
  }

  /** The way in which metadata reaches a broker. */
  static final Reading METADATA =
      Reading.valueOf(System.getProperty("insync.metadata", "coalesced").toUpperCase(Locale.ROOT));

  /** How often a leader's view of a follower was set for a proposal. */
  static long overrides;

  private Steering() {}
}
