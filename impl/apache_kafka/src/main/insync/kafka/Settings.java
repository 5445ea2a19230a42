package insync.kafka;

import com.fasterxml.jackson.databind.JsonNode;

/** The model's bounds and settings, by their names there. */
record Settings(
    int replicas,
    int log,
    int records,
    int epochs,
    int isrChanges,
    int crashes,
    int lossyCrashes,
    int shutdowns,
    int sessionsLost,
    int minInsync,
    int consumers,
    short acks,
    boolean unclean,
    boolean flushAlways,
    boolean followerReads,
    boolean producersWait,
    boolean ownView,
    boolean operations,
    int reassignments,
    int leastReplicas,
    int minimumChanges,
    int uncleanSwitches,
    int disksReplaced,
    int directoriesRemoved,
    boolean newDirectories,
    int copies,
    int lateNews,
    int snapshotsLoaded,
    int oldMetadata) {

  static Settings of(JsonNode c) {
    if (!c.has("replicas")) {
      throw new IllegalArgumentException("this adapter drives designs of a partition's replicas");
    }
    short acks =
        switch (c.get("acks").asText()) {
          case "0" -> 0;
          case "1" -> 1;
          default -> -1;
        };
    return new Settings(
        c.get("replicas").asInt(),
        c.get("log").asInt(),
        c.get("records").asInt(),
        c.get("epochs").asInt(),
        c.get("isr_changes").asInt(),
        c.get("crashes").asInt(),
        c.get("lossy_crashes").asInt(),
        c.get("shutdowns").asInt(),
        c.get("sessions_lost").asInt(),
        c.get("min_insync").asInt(),
        c.get("consumers").asInt(),
        acks,
        c.get("unclean").asBoolean(),
        c.get("flush").asText().equals("always"),
        c.get("follower_reads").asBoolean(),
        c.path("producers_wait").asBoolean(false),
        c.path("own_view").asBoolean(false),
        c.has("minimum_changes"),
        c.path("reassignments").asInt(0),
        c.path("least_replicas").asInt(1),
        c.path("minimum_changes").asInt(0),
        c.path("unclean_switches").asInt(0),
        c.path("disks_replaced").asInt(0),
        c.path("directories_removed").asInt(0),
        c.path("new_directories").asBoolean(false),
        c.path("copies").asInt(0),
        c.path("late_news").asInt(0),
        c.path("snapshots_loaded").asInt(0),
        c.path("old_metadata").asInt(0));
  }

  boolean restarts() {
    return crashes + lossyCrashes + shutdowns > 0;
  }
}
