// pstest serves the Pub/Sub of Google's own Go tests on a loopback port: topics, subscriptions and schemas in memory.
//
// It prints its address, and ends when its standard input does, so that it cannot outlive the process that started it.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"cloud.google.com/go/pubsub/pstest"
)

// losing answers the first acknowledgements and forgets them, as the service may: the leases of their messages expire.
type losing struct{ left int }

// React is called by one request at a time: the server holds its lock.
func (l *losing) React(_ interface{}) (handled bool, ret interface{}, err error) {
	l.left--
	return l.left >= 0, nil, nil
}

func main() {
	port := flag.Int("port", 0, "of 127.0.0.1; 0: a free one")
	lost := flag.Int("lost_acks", 0, "the number of requests to acknowledge messages, from the first on, that are lost")
	flag.Parse()
	acknowledge := pstest.ServerReactorOption{FuncName: "Acknowledge", Reactor: &losing{*lost}}
	server := pstest.NewServerWithAddress(fmt.Sprintf("127.0.0.1:%d", *port), acknowledge)
	defer server.Close()
	fmt.Println(server.Addr)
	io.Copy(io.Discard, os.Stdin)
}
