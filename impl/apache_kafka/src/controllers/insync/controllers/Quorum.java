package insync.controllers;

import insync.conform.Refused;
import insync.raft.Messages;
import java.util.Set;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.raft.FollowerState;
import org.apache.kafka.raft.HeldRequest;

/** The quorum's steps, each as messages and timers of Kafka's clients. */
final class Quorum {
  /**
   * Rounds after which a follower has all that its leader has: it hears of it, truncates, fetches.
   */
  private static final int ROUNDS = 8;

  /**
   * How often a controller asks for a vote. By the answer to its first pre-vote it may hear who led
   * that epoch, and follow.
   */
  private static final int STANDS = 2;

  /**
   * How a follower ends that knows what its leader has not: by a fatal fault. When it starts again
   * it knows no high watermark, and truncates.
   */
  private static final String BELOW_WATERMARK = "The leader requested truncation to offset";

  private Quorum() {}

  /**
   * A controller asks for a vote, gets that of one other, and is elected. It has appended nothing.
   */
  static void elect(World world, int v, int q, int term) {
    Row row = world.row(v);
    if (v == q) {
      throw Refused.because("it votes for itself already");
    }
    if (term != row.term() + 1) {
      throw Refused.cannot("a nominee's epoch is the next one");
    }
    if (row.leads() || row.role().equals("resigned")) {
      throw Refused.cannot("who led an epoch does not stand in the next one");
    }
    free(world, q);
    HeldRequest request = null;
    for (int i = 0; i < STANDS && request == null; i++) {
      stand(world, v);
      HeldRequest asks = world.request(v, q, "pre_vote");
      if (asks == null) {
        throw Refused.answer("it asks nobody for a vote");
      }
      world.controller(v).client.take(q, world.answer(q, asks));
      request = world.request(v, q, "vote");
    }
    if (request == null) {
      throw Refused.answer("the pre-vote is not granted");
    }
    if (Row.term(world.controller(v).client.epoch()) != term) {
      throw Refused.cannot("it hears of a later epoch before it stands");
    }
    world.controller(v).client.takeAlone(q, world.answer(q, request));
    if (!world.controller(v).client.quorum().isLeader()) {
      throw Refused.answer("the vote is not granted");
    }
  }

  private static void stand(World world, int v) {
    var client = world.controller(v).client;
    if (!client.fire(client.state() instanceof FollowerState ? "fetchTimer" : "electionTimer")) {
      throw Refused.cannot("a " + client.state().name() + " has no such timer");
    }
  }

  /** Who leads resigns, and who follows hears nothing any more: so it is free to vote. */
  private static void free(World world, int q) {
    switch (world.row(q).role()) {
      case "leader" -> world.controller(q).client.resign();
      case "follower" -> world.controller(q).client.fire("fetchTimer");
      default -> {}
    }
  }

  /** A leader appends its LeaderChange. */
  static void begin(World world, int c) {
    if (!world.row(c).leads() || world.row(c).hasBegun()) {
      throw Refused.because("it does not begin to lead");
    }
    world.controller(c).client.rest();
  }

  /** A follower hears of its leader, and fetches all that it has. Nothing is committed by that. */
  static void copy(World world, int f, int v) {
    if (f == v || !world.row(v).hasBegun()) {
      throw Refused.because("it does not lead");
    }
    if (has(world, f, v)) {
      throw Refused.because("it has all that already");
    }
    Integer watermark = world.controller(v).client.highWatermark();
    for (int i = 0; i < ROUNDS && !has(world, f, v); i++) {
      if (follows(world, f, v)) {
        fetch(world, f, v);
      } else {
        isTold(world, f, v);
      }
    }
    if (!has(world, f, v)) {
      throw Refused.answer("it does not fetch all that the leader has");
    }
    Integer now = world.controller(v).client.highWatermark();
    if (now != null && !now.equals(watermark)) {
      throw Refused.cannot("its fetch acknowledges what it had fetched before");
    }
  }

  private static boolean follows(World world, int f, int v) {
    var client = world.controller(f).client;
    return Integer.valueOf(v).equals(client.leader())
        && client.epoch() == world.controller(v).client.epoch();
  }

  private static boolean has(World world, int f, int v) {
    return follows(world, f, v)
        && world.controller(f).disk.epochs().equals(world.controller(v).disk.epochs())
        && world.batches(f).equals(world.batches(v));
  }

  private static void fetch(World world, int f, int v) {
    ApiMessage answer = world.waiting(f, v);
    if (answer == null) {
      HeldRequest request = world.request(f, v, "fetch");
      if (request == null) {
        throw Refused.cannot("it does not fetch");
      }
      answer = world.answer(v, request);
    }
    try {
      world.controller(f).client.take(v, answer);
    } catch (KafkaException fatal) {
      if (!String.valueOf(fatal.getMessage()).startsWith(BELOW_WATERMARK)) {
        throw fatal;
      }
      world.startAgain(f);
    }
  }

  private static void isTold(World world, int f, int v) {
    if (world.request(v, f, "begin") == null) {
      world.controller(v).client.beginsAgain();
    }
    HeldRequest begin = world.request(v, f, "begin");
    if (begin == null) {
      throw Refused.cannot("the leader does not say that it leads");
    }
    world.controller(v).client.take(f, world.answer(f, begin));
  }

  /** A follower's fetch acknowledges the first n records, so the leader commits them. */
  static void commit(World world, int c, int n) {
    Row row = world.row(c);
    if (!row.leads() || n <= row.end()) {
      throw Refused.because("it does not commit so many");
    }
    for (int f = 1; f <= world.controllers(); f++) {
      if (f != c && acknowledges(world, f, c, n)) {
        HeldRequest fetch = world.request(f, c, "fetch");
        ApiMessage answer = world.answer(c, fetch);
        if (Messages.hasRecords(answer)) {
          world.put(f, c, fetch.number(), answer);
        } else {
          world.controller(f).client.take(c, answer);
        }
        return;
      }
    }
    throw Refused.cannot("no fetch that was not answered yet acknowledges just so many");
  }

  private static boolean acknowledges(World world, int f, int c, int n) {
    Row follower = world.row(f);
    return follower.log().size() == n
        && follower.term() == world.row(c).term()
        && follows(world, f, c)
        && world.request(f, c, "fetch") != null;
  }

  /** All voters vote for one, and have all that it has, committed: as everything begins. */
  static void settle(World world, int active, Set<Integer> others) {
    stand(world, active);
    for (int q : others) {
      HeldRequest asks = world.request(active, q, "pre_vote");
      if (asks != null) {
        world.controller(active).client.take(q, world.answer(q, asks));
      }
    }
    ApiMessage last = null;
    int from = 0;
    for (int q : others) {
      last = world.answer(q, world.request(active, q, "vote"));
      from = q;
    }
    world.controller(active).client.take(from, last); // with this one it is elected
    spread(world, active, others);
  }

  /** Everybody fetches until nothing is left to fetch or to commit. */
  static void spread(World world, int active, Set<Integer> others) {
    for (int i = 0; i < ROUNDS; i++) {
      for (int f : others) {
        if (follows(world, f, active)) {
          fetch(world, f, active);
        } else {
          isTold(world, f, active);
        }
      }
    }
  }
}
