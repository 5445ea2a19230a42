package insync.objects;

import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import jdk.internal.misc.Unsafe;

/**
 * Copies of everything that a system under test has become: all objects that can be reached, field
 * by field.
 *
 * <p>What cannot change, or is nobody's state (configurations, metrics, loggers, metadata images,
 * records of the wire), is shared by all copies; {@link #shared} is the list.
 */
public final class Copier {
  private static final Unsafe UNSAFE = Unsafe.getUnsafe();
  private static final long BASE = UNSAFE.arrayBaseOffset(Object[].class);
  private static final long SCALE = UNSAFE.arrayIndexScale(Object[].class);
  private static final Map<Class<?>, Plan> PLANS = new IdentityHashMap<>();
  private static final byte REFERENCE = 0;
  private static final String[] SHARED = {
    "java.lang.",
    "java.io.File",
    "java.nio.Direct",
    "java.nio.Heap",
    "java.nio.file.",
    "java.util.regex.",
    "java.util.UUID",
    "java.util.Random",
    "java.text.",
    "java.time.",
    "java.security.",
    "java.net.",
    "sun.",
    "jdk.",
    "com.yammer.",
    "org.slf4j.",
    "com.typesafe.",
    "org.apache.logging.",
    "com.fasterxml.",
    "insync.raft.ClientMetrics",
    "insync.raft.Folder",
    "org.apache.kafka.common.metrics.",
    "org.apache.kafka.common.config.",
    "org.apache.kafka.common.message.",
    "org.apache.kafka.common.metadata.",
    "org.apache.kafka.common.requests.",
    "org.apache.kafka.common.protocol.",
    "org.apache.kafka.common.Uuid",
    "org.apache.kafka.common.Topic",
    "org.apache.kafka.common.Node",
    "org.apache.kafka.common.utils.",
    "org.apache.kafka.common.record.internal.MemoryRecords",
    "org.apache.kafka.common.record.MemoryRecords",
    "org.apache.kafka.image.",
    "org.apache.kafka.network.metrics.",
    "org.apache.kafka.server.metrics.",
    "org.apache.kafka.server.config.",
    "org.apache.kafka.server.quota.",
    "org.apache.kafka.storage.log.metrics.",
    "org.apache.kafka.storage.internals.log.LogConfig",
    "org.apache.kafka.storage.internals.log.CleanerConfig",
    "org.apache.kafka.storage.internals.log.ProducerStateManagerConfig",
    "org.apache.kafka.storage.internals.log.LogOffsetMetadata",
    "org.apache.kafka.storage.internals.log.EpochEntry",
    "org.apache.kafka.server.replica.ReplicaState",
    "org.apache.kafka.metadata.PartitionRegistration",
    "org.apache.kafka.metadata.BrokerRegistration",
    "org.apache.kafka.metadata.VersionRange",
    "org.apache.kafka.metadata.KafkaConfigSchema",
    "scala.math.",
    "kafka.server.KafkaConfig",
    "kafka.server.QuotaFactory",
    "kafka.server.ReplicationQuotaManager",
    "kafka.server.ClientQuotaManager",
    "kafka.server.BrokerTopicStats",
  };

  /** What is copied although its name begins as one of those. */
  private static final String[] COPY_PREFIXES = {
    "org.apache.kafka.common.utils.HeldTimer",
    "org.apache.kafka.image.MetadataDelta",
    "org.apache.kafka.image.loader.MetadataLoader",
    "org.apache.kafka.image.loader.MetadataBatchLoader",
  };

  private Copier() {}

  /** How a class is copied: where its references lie, and its other fields with their sizes. */
  private static final class Plan {
    final Class<?> type;
    final boolean shared;
    final long[] references;
    final long[] fields;
    final byte[] sizes;

    Plan(
        Class<?> type, boolean shared, List<Long> references, List<Long> fields, List<Byte> sizes) {
      this.type = type;
      this.shared = shared;
      this.references = references.stream().mapToLong(x -> x).toArray();
      this.fields = fields.stream().mapToLong(x -> x).toArray();
      this.sizes = new byte[sizes.size()];
      for (int i = 0; i < this.sizes.length; i++) {
        this.sizes[i] = sizes.get(i);
      }
    }
  }

  /** A copy of this object and of all that it leads to. */
  public static <T> T copy(T original) {
    return new Mould<>(original).copy();
  }

  /**
   * What copies of one object are made from: a copy of its own that nobody else sees, and where its
   * objects refer to each other. To make it, each object is looked up by its identity; to copy from
   * it, none is.
   */
  public static final class Mould<T> {
    private final Object[] originals;
    private final Plan[] plans;
    private final long[] offsets;
    private final int[] owners;
    private final int[] targets;

    /** A mould of the object as it is now. */
    public Mould(T original) {
      Making making = new Making();
      making.number(original);
      for (int i = 0; i < making.originals.size(); i++) {
        making.fill(i);
      }
      originals = making.twins.toArray();
      plans = making.plans.toArray(Plan[]::new);
      offsets = Arrays.copyOf(making.offsets, making.references);
      owners = Arrays.copyOf(making.owners, making.references);
      targets = Arrays.copyOf(making.targets, making.references);
    }

    /** A copy of the object as it was when the mould was made. */
    public T copy() {
      Object[] twins = new Object[originals.length];
      for (int i = 0; i < twins.length; i++) {
        twins[i] = plans[i] == null ? array(originals[i]) : object(originals[i], plans[i]);
      }
      for (int i = 0; i < owners.length; i++) {
        UNSAFE.putReference(twins[owners[i]], offsets[i], twins[targets[i]]);
      }
      for (Object twin : twins) {
        if (twin instanceof IdentityHashMap<?, ?> map) {
          placeAnew(map);
        }
      }
      @SuppressWarnings("unchecked")
      T first = (T) twins[0];
      return first;
    }
  }

  /** A mould that is being made. */
  private static final class Making {
    final IdentityHashMap<Object, Integer> numbers = new IdentityHashMap<>(512);
    final List<Object> originals = new ArrayList<>();
    final List<Object> twins = new ArrayList<>();
    final List<Plan> plans = new ArrayList<>();
    long[] offsets = new long[1024];
    int[] owners = new int[1024];
    int[] targets = new int[1024];
    int references;

    /** The number of an object that is copied, -1 of one that is shared. */
    int number(Object original) {
      if (original == null) {
        return -1;
      }
      boolean array = original.getClass().isArray();
      Plan plan = array ? null : PLANS.computeIfAbsent(original.getClass(), Copier::plan);
      if (array ? Array.getLength(original) == 0 : plan.shared) {
        return -1;
      }
      Integer known = numbers.get(original);
      if (known != null) {
        return known;
      }
      int number = originals.size();
      numbers.put(original, number);
      originals.add(original);
      twins.add(array ? array(original) : object(original, plan));
      plans.add(plan);
      return number;
    }

    void fill(int owner) {
      Object original = originals.get(owner);
      Plan plan = plans.get(owner);
      if (plan != null) {
        for (long at : plan.references) {
          refer(owner, at, UNSAFE.getReference(original, at));
        }
      } else if (original instanceof Object[] all) {
        for (int i = 0; i < all.length; i++) {
          refer(owner, BASE + (long) i * SCALE, all[i]);
        }
      }
    }

    private void refer(int owner, long at, Object to) {
      int target = number(to);
      if (target < 0) {
        return;
      }
      if (references == owners.length) {
        offsets = Arrays.copyOf(offsets, 2 * references);
        owners = Arrays.copyOf(owners, 2 * references);
        targets = Arrays.copyOf(targets, 2 * references);
      }
      owners[references] = owner;
      offsets[references] = at;
      targets[references++] = target;
      UNSAFE.putReference(twins.get(owner), at, null);
    }
  }

  /** A copy of a key has an identity of its own, by which it is found. */
  private static <K, V> void placeAnew(IdentityHashMap<K, V> map) {
    List<K> keys = new ArrayList<>();
    List<V> values = new ArrayList<>();
    map.forEach(
        (key, value) -> {
          keys.add(key);
          values.add(value);
        });
    map.clear();
    for (int i = 0; i < keys.size(); i++) {
      map.put(keys.get(i), values.get(i));
    }
  }

  /** The same object once more, which refers to the same others. */
  private static Object object(Object original, Plan plan) {
    Object twin;
    try {
      twin = UNSAFE.allocateInstance(plan.type);
    } catch (InstantiationException problem) {
      throw new IllegalStateException(problem);
    }
    for (long at : plan.references) {
      UNSAFE.putReference(twin, at, UNSAFE.getReference(original, at));
    }
    for (int i = 0; i < plan.fields.length; i++) {
      long at = plan.fields[i];
      switch (plan.sizes[i]) {
        case 1 -> UNSAFE.putByte(twin, at, UNSAFE.getByte(original, at));
        case 2 -> UNSAFE.putShort(twin, at, UNSAFE.getShort(original, at));
        case REFERENCE -> UNSAFE.putReference(twin, at, UNSAFE.getReference(original, at));
        case 4 -> UNSAFE.putInt(twin, at, UNSAFE.getInt(original, at));
        default -> UNSAFE.putLong(twin, at, UNSAFE.getLong(original, at));
      }
    }
    return twin;
  }

  private static Object array(Object original) {
    if (original instanceof Object[] all) {
      return all.clone();
    }
    if (original instanceof byte[] all) {
      return all.clone();
    }
    if (original instanceof int[] all) {
      return all.clone();
    }
    int length = Array.getLength(original);
    Object twin = Array.newInstance(original.getClass().getComponentType(), length);
    System.arraycopy(original, 0, twin, 0, length);
    return twin;
  }

  private static boolean shared(Class<?> type) {
    if (type.isEnum()
        || Enum.class.isAssignableFrom(type)
        || ClassLoader.class.isAssignableFrom(type)) {
      return true;
    }
    String name = type.getName();
    if (name.endsWith("$") && !name.startsWith("insync.")) {
      return true; // a Scala object: there is one
    }
    return begins(name, SHARED) && !begins(name, COPY_PREFIXES);
  }

  private static boolean begins(String name, String[] prefixes) {
    for (String prefix : prefixes) {
      if (name.startsWith(prefix)) {
        return true;
      }
    }
    return false;
  }

  private static Plan plan(Class<?> type) {
    List<Long> references = new ArrayList<>();
    List<Long> fields = new ArrayList<>();
    List<Byte> sizes = new ArrayList<>();
    boolean shared = shared(type);
    for (Class<?> c = type; c != null && !shared; c = c.getSuperclass()) {
      for (Field field : c.getDeclaredFields()) {
        if (Modifier.isStatic(field.getModifiers())) {
          continue;
        }
        long at = UNSAFE.objectFieldOffset(field);
        Class<?> of = field.getType();
        if (!of.isPrimitive() && c != Thread.class) {
          references.add(at);
        } else {
          fields.add(at);
          sizes.add(of.isPrimitive() ? size(of) : REFERENCE);
        }
      }
    }
    boolean stateless = !shared && type.isHidden() && references.isEmpty() && fields.isEmpty();
    return new Plan(type, shared || stateless, references, fields, sizes);
  }

  private static byte size(Class<?> primitive) {
    if (primitive == long.class || primitive == double.class) {
      return 8;
    }
    if (primitive == int.class || primitive == float.class) {
      return 4;
    }
    return (byte) (primitive == short.class || primitive == char.class ? 2 : 1);
  }
}
