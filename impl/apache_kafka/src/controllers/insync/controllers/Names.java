package insync.controllers;

import java.util.Collection;
import java.util.List;

/** As the model names controllers and brokers, from 1 on. */
final class Names {
  private Names() {}

  static String controller(Integer id) {
    return id == null ? null : "v" + id;
  }

  static String broker(Integer id) {
    return id == null ? null : "r" + id;
  }

  static List<String> brokers(Collection<Integer> ids) {
    return ids.stream().sorted().map(Names::broker).toList();
  }

  static int id(Object name) {
    return Integer.parseInt(String.valueOf(name).substring(1));
  }
}
