package insync.found.brokers;

import java.util.function.Predicate;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestHeader;

/** Which requests a {@link DelayingProxy} lets wait. */
final class Requests {
  private Requests() {}

  /** Of one kind. On the path to the controller a broker's FETCH is for metadata. */
  static Predicate<RequestHeader> of(ApiKeys kind) {
    return request -> request.apiKey() == kind;
  }

  /** The fetches of a follower, by the names of its fetcher threads. */
  static Predicate<RequestHeader> fetchesOf(int broker) {
    return request -> request.clientId().startsWith("broker-" + broker + "-fetcher");
  }
}
