// kfake, franz-go's broker for tests, as a process of its own: a system under test for insync (docs/own-broker.md).
package main

import (
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port := flag.Int("port", 9092, "where it listens, on 127.0.0.1")
	data := flag.String("data", "", "the folder that it keeps its state in; without it, memory")
	flag.Parse()
	options := []kfake.Opt{kfake.NumBrokers(1), kfake.Ports(*port)}
	if *data != "" {
		options = append(options, kfake.DataDir(*data))
	}
	cluster, err := kfake.NewCluster(options...)
	if err != nil {
		log.Fatal(err)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGINT, syscall.SIGTERM)
	<-asked
	cluster.Close()
}
