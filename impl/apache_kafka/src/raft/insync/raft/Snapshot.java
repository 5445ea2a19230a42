package insync.raft;

import insync.raft.Messages.Answer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.function.IntPredicate;
import org.apache.kafka.raft.ElectionState;
import org.apache.kafka.raft.HeldClient;
import org.apache.kafka.raft.HeldRequest;
import org.apache.kafka.raft.ReplicaKey;
import org.apache.kafka.server.common.OffsetAndEpoch;

/** A world in the variables of the model (spec/kraft_protocol/state.py). */
final class Snapshot {
  private Snapshot() {}

  /** What can be told of one voter alone. */
  record Row(
      int id,
      boolean runs,
      int epoch,
      Integer vote,
      Integer leader,
      List<Integer> log,
      String role,
      Integer highWatermark,
      boolean hasFetched,
      List<String> granting,
      List<String> rejecting,
      Map<Integer, Integer> followerEnds,
      Map<Integer, HeldRequest> requests,
      boolean isVoter,
      int directory,
      int voteDirectory,
      Map<Integer, Integer> followerDirectories,
      Map<Integer, Integer> awaitedEnds,
      Map<Integer, Map<Integer, Integer>> votersAt,
      int logStart,
      int logWatermark,
      OffsetAndEpoch fetchingSnapshot) {}

  static Row row(Voter voter) {
    return voter.runs() ? running(voter, voter.process) : stopped(voter);
  }

  private static Row running(Voter voter, HeldClient<String> process) {
    Disk disk = voter.disk;
    Integer watermark = process.highWatermark();
    Map<Integer, HeldClient.Fetched> fetched = process.fetched(voter.id);
    Map<Integer, Integer> ends = new HashMap<>();
    Map<Integer, Integer> directories = new HashMap<>();
    fetched.forEach((q, one) -> ends.put(q, disk.position(one.end())));
    Map<Integer, Integer> awaited = new HashMap<>();
    fetched.forEach(
        (q, one) -> {
          directories.put(q, Disk.number(one.directory()));
          if (one.target() != null) {
            awaited.put(q, disk.position(one.target()));
          }
        });
    return new Row(
        voter.id,
        true,
        process.epoch(),
        process.vote(),
        process.leader(),
        disk.batchEpochs(),
        process.state().name().toLowerCase(Locale.ROOT),
        watermark == null ? null : disk.position(watermark),
        process.hasFetched(),
        names(process.votes(true)),
        names(process.votes(false)),
        ends,
        requests(process),
        process.isVoter(),
        disk.number,
        process.voteDirectory() == null ? 0 : Disk.number(process.voteDirectory()),
        directories,
        awaited,
        votersAt(process, disk),
        disk.position(disk.start),
        disk.position(process.logWatermark()),
        process.fetchingSnapshot());
  }

  /** The voter sets that a process has read. In the model that of a snapshot is its last record. */
  private static Map<Integer, Map<Integer, Integer>> votersAt(
      HeldClient<String> process, Disk disk) {
    Map<Integer, Map<Integer, Integer>> all = new HashMap<>();
    int first = disk.position(disk.start);
    process
        .voterSets()
        .forEach(
            (offset, voters) -> {
              int position = Math.max(disk.position(offset + 1), first) - 1;
              if (position >= 0) {
                all.put(position, VoterSets.of(voters));
              }
            });
    return all;
  }

  /** What a voter without a leader asks of anybody, to hear who leads, is not of the model. */
  private static Map<Integer, HeldRequest> requests(HeldClient<String> process) {
    return process.quorum().isUnattached() ? Map.of() : process.requests();
  }

  /** Of a voter without a process, what its disk says. */
  private static Row stopped(Voter voter) {
    ElectionState election = voter.disk.election;
    List<Integer> log = voter.disk.batchEpochs();
    ReplicaKey vote = election == null ? null : election.optionalVotedKey().orElse(null);
    return new Row(
        voter.id,
        false,
        election == null ? 0 : election.epoch(),
        vote == null ? null : vote.id(),
        election == null || !election.hasLeader() ? null : election.leaderId(),
        log,
        "unattached",
        null,
        false,
        List.of(),
        List.of(),
        Map.of(),
        Map.of(),
        false,
        voter.disk.number,
        vote == null ? 0 : vote.directoryId().map(Disk::number).orElse(0),
        Map.of(),
        Map.of(),
        VoterSets.on(voter.disk),
        voter.disk.position(voter.disk.start),
        0,
        null);
  }

  static Map<String, Object> of(
      World world, int epochs, int offsets, boolean snapshots, boolean late) {
    Map<String, Object> all = new LinkedHashMap<>();
    if (world.isDynamic()) {
      putVoters(all, world, offsets);
    }
    if (snapshots) {
      putSnapshots(all, world);
    }
    if (late) {
      putLate(all, world);
    }
    all.put("alive", among(world, v -> world.place(v).row.runs()));
    all.put("epoch", each(world, Row::epoch));
    all.put("vote", each(world, row -> name(row.vote())));
    all.put("leader", each(world, row -> name(row.leader())));
    all.put("log", each(world, Row::log));
    all.put("role", each(world, Row::role));
    all.put("high_watermark", each(world, Row::highWatermark));
    all.put("has_fetched", among(world, v -> world.place(v).row.hasFetched()));
    all.put("granting", each(world, Row::granting));
    all.put("rejecting", each(world, Row::rejecting));
    all.put("follower_end", pairs(world, (row, q) -> row.followerEnds().get(q)));
    all.put("request", pairs(world, Snapshot::request));
    all.put("answer", answers(world, "none", Answer::kind));
    all.put("answer_epoch", answers(world, 0, Answer::epoch));
    all.put("answer_leader", answers(world, null, answer -> name(answer.leader())));
    all.put("answer_record", answers(world, null, Answer::firstEpoch));
    all.put("answer_last_epoch", answers(world, 0, Answer::lastEpoch));
    all.put("answer_end", answers(world, 0, a -> a.snapshot() == null ? a.end() : 0));
    all.put("answer_watermark", answers(world, null, Answer::watermark));
    all.put("writes", world.writes);
    all.put("restarts", world.restarts);
    all.put("lost_disks", world.lostDisks);
    Map<String, Object> leaders = new LinkedHashMap<>();
    for (int e = 0; e <= epochs; e++) {
      leaders.put(String.valueOf(e), names(world.leaders(e)));
    }
    all.put("leaders", leaders);
    all.put("committed", world.committed());
    return all;
  }

  private static void putVoters(Map<String, Object> all, World world, int offsets) {
    all.put("directory", each(world, Row::directory));
    all.put("vote_directory", each(world, Row::voteDirectory));
    all.put(
        "follower_directory",
        pairs(world, (row, q) -> row.followerDirectories().getOrDefault(q, 0)));
    all.put("awaited_end", pairs(world, (row, q) -> row.awaitedEnds().get(q)));
    all.put(
        "voters_at", each(world, row -> byOffset(offsets, o -> voters(world, row.votersAt().get(o)))));
    all.put(
        "answer_voters",
        answers(world, voters(world, null), answer -> voters(world, answer.voters())));
    List<Map<Integer, Integer>> committed = world.committedVoters();
    all.put(
        "committed_voters",
        byOffset(offsets, o -> voters(world, o < committed.size() ? committed.get(o) : null)));
    all.put("joiners", names(world.joiners()));
    all.put("changes", world.changes);
  }

  static void putLists(Map<String, Object> all, World world) {
    all.put("missing_voters", each(world, row -> names(world.missing(row.id()))));
    all.put("omissions", world.omissions());
  }

  static void putLoneNodes(Map<String, Object> all, World world) {
    all.put("lone_nodes", names(world.loneNodes()));
  }

  private static void putSnapshots(Map<String, Object> all, World world) {
    all.put("log_start", each(world, Row::logStart));
    all.put(
        "fetching_snapshot",
        each(
            world,
            row -> row.fetchingSnapshot() == null ? 0 : world.end(row.fetchingSnapshot())));
    all.put("answer_log", answers(world, List.of(), Answer::log));
    all.put("snapshots", world.snapshots);
  }

  private static void putLate(Map<String, Object> all, World world) {
    World.LateRequest late = world.late;
    all.put("late_sender", late == null ? null : name(late.sender()));
    all.put("late_receiver", late == null ? null : name(late.receiver()));
    all.put("late_request", late == null ? "none" : late.kind());
    all.put("late_epoch", late == null ? 0 : late.epoch());
    all.put("late_log", late == null ? List.of() : late.log());
    all.put("late_requests", world.lateRequests);
  }

  private static Map<String, Object> byOffset(int offsets, IntFunction<Object> value) {
    Map<String, Object> all = new LinkedHashMap<>();
    for (int o = 0; o <= offsets; o++) {
      all.put(String.valueOf(o), value.apply(o));
    }
    return all;
  }

  /** A voter set by the names of the voters; of nobody where there is none. */
  private static Map<String, Object> voters(World world, Map<Integer, Integer> voters) {
    return each(world, row -> voters == null ? null : voters.get(row.id()));
  }

  private static Object request(Row row, int to) {
    HeldRequest request = row.requests().get(to);
    return request == null ? "none" : Messages.kind(request);
  }

  private static Map<String, Object> each(World world, Function<Row, Object> value) {
    Map<String, Object> all = new LinkedHashMap<>();
    for (int v = 1; v <= world.voters(); v++) {
      all.put(name(v), value.apply(world.place(v).row));
    }
    return all;
  }

  private static Map<String, Object> pairs(World world, BiFunction<Row, Integer, Object> value) {
    return each(
        world,
        row -> {
          Map<String, Object> all = new LinkedHashMap<>();
          for (int q = 1; q <= world.voters(); q++) {
            all.put(name(q), value.apply(row, q));
          }
          return all;
        });
  }

  private static Map<String, Object> answers(
      World world, Object blank, Function<Answer, Object> value) {
    return pairs(
        world,
        (row, to) -> {
          Answer answer = world.answer(row.id(), to);
          return answer == null ? blank : value.apply(answer);
        });
  }

  private static List<String> among(World world, IntPredicate which) {
    List<String> all = new ArrayList<>();
    for (int v = 1; v <= world.voters(); v++) {
      if (which.test(v)) {
        all.add(name(v));
      }
    }
    return all;
  }

  private static List<String> names(Collection<Integer> ids) {
    return ids.stream().sorted().map(Snapshot::name).toList();
  }

  /** As the model names a voter; null for none. */
  static String name(Integer id) {
    return id == null || id < 0 ? null : "v" + id;
  }

  static int id(Object name) {
    return Integer.parseInt(String.valueOf(name).substring(1));
  }
}
