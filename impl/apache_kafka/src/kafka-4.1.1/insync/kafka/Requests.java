package insync.kafka;

import java.util.Map;
import kafka.network.RequestChannel;
import org.apache.kafka.common.network.Send;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Request;
import org.apache.kafka.network.metrics.RequestChannelMetrics;
import scala.Function1;
import scala.Option;
import scala.runtime.BoxedUnit;

/** RequestChannel, as Kafka 4.1 has it: nothing waits in it. */
final class Requests extends RequestChannel {
  private final Apis apis;

  Requests(Time time, RequestChannelMetrics metrics, Apis apis) {
    super(1, time, metrics);
    this.apis = apis;
  }

  @Override
  public void sendResponse(
      Request request, AbstractResponse response, Option<Function1<Send, BoxedUnit>> whenSent) {
    apis.answered(request.header(), response);
  }

  @Override
  public void sendNoOpResponse(Request request) {
    apis.answered(request.header(), null);
  }

  @Override
  public void closeConnection(Request request, Map<Errors, Integer> errors) {
    apis.answered(request.header(), null);
  }
}
