package insync.controllers;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.function.IntPredicate;

/** A world in the variables of the model (spec/controller_protocol/state.py). */
final class Snapshot {
  private final World world;
  private final Bounds bounds;

  private Snapshot(World world, Bounds bounds) {
    this.world = world;
    this.bounds = bounds;
  }

  static Map<String, Object> of(World world, Bounds bounds) {
    Snapshot snapshot = new Snapshot(world, bounds);
    Map<String, Object> all = new LinkedHashMap<>();
    snapshot.quorum(all);
    snapshot.records(all);
    snapshot.news(all);
    snapshot.requests(all);
    return all;
  }

  private void quorum(Map<String, Object> all) {
    all.put("term", each(c -> world.row(c).term()));
    all.put("support", each(c -> Names.controller(world.row(c).support())));
    all.put("quorum_leaders", among(c -> world.row(c).leads()));
    all.put("quorum_log", each(c -> world.row(c).log()));
    all.put("quorum_end", each(c -> world.row(c).end()));
    all.put("quorum_committed", world.committed());
    all.put("lost_disks", world.lostDisks);
  }

  private void records(Map<String, Object> all) {
    all.put("record_leader", eachRecord(null, m -> Names.broker(m.leader())));
    all.put("record_epoch", eachRecord(0, Metadata::leaderEpoch));
    all.put("record_partition_epoch", eachRecord(0, Metadata::partitionEpoch));
    all.put("record_isr", eachRecord(List.of(), m -> Names.brokers(m.isr())));
    all.put("record_elr", eachRecord(List.of(), m -> Names.brokers(m.elr())));
    all.put("record_last_leader", eachRecord(null, m -> Names.broker(m.lastLeader())));
    all.put("record_fenced", eachRecord(List.of(), m -> Names.brokers(m.fenced())));
    if (bounds.restarts() > 0) {
      all.put("record_registration", eachRecord(brokers(r -> 0), this::registration));
    }
  }

  private void news(Map<String, Object> all) {
    Metadata m = world.news;
    all.put("controller_leader", Names.broker(m.leader()));
    all.put("controller_epoch", m.leaderEpoch());
    all.put("controller_partition_epoch", m.partitionEpoch());
    all.put("controller_isr", Names.brokers(m.isr()));
    all.put("controller_elr", Names.brokers(m.elr()));
    all.put("last_known_leader", Names.broker(m.lastLeader()));
    all.put("fenced", Names.brokers(m.fenced()));
    if (bounds.restarts() > 0) {
      all.put("registration", registration(m));
    }
  }

  private void requests(Map<String, Object> all) {
    all.put("alter", brokers(r -> world.replies.getOrDefault(r, world.model("alter", r).asText())));
    all.put("alter_holder", brokers(r -> Names.controller(world.holder(r))));
    all.put("alter_end", brokers(this::end));
  }

  private int end(int leader) {
    Integer holder = world.holder(leader);
    return holder == null ? 0 : world.row(holder).pending().get(leader);
  }

  private Object registration(Metadata metadata) {
    return brokers(r -> metadata.incarnations().getOrDefault(r, 0));
  }

  private Map<String, Object> each(IntFunction<Object> value) {
    Map<String, Object> all = new LinkedHashMap<>();
    for (int c = 1; c <= world.controllers(); c++) {
      all.put(Names.controller(c), value.apply(c));
    }
    return all;
  }

  private Map<String, Object> brokers(IntFunction<Object> value) {
    Map<String, Object> all = new LinkedHashMap<>();
    for (int r = 1; r <= world.brokers(); r++) {
      all.put(Names.broker(r), value.apply(r));
    }
    return all;
  }

  private Map<String, Object> eachRecord(Object blank, Function<Metadata, Object> value) {
    return each(
        c -> {
          Map<String, Object> all = new LinkedHashMap<>();
          List<Metadata> metadata = world.row(c).metadata();
          for (int o = 0; o <= bounds.of("metadata_log"); o++) {
            all.put(String.valueOf(o), o < metadata.size() ? value.apply(metadata.get(o)) : blank);
          }
          return all;
        });
  }

  private List<String> among(IntPredicate which) {
    List<String> all = new ArrayList<>();
    for (int c = 1; c <= world.controllers(); c++) {
      if (which.test(c)) {
        all.add(Names.controller(c));
      }
    }
    return all;
  }
}
