// SPDX-License-Identifier: MIT
//
// copy.go - the forwarder that Go programmers write: io.Copy each way.
// For tools/bench. On Linux its runtime uses splice(2) inside.
package main

import (
	"io"
	"net"
	"os"
)

func pass(to, from *net.TCPConn) {
	io.Copy(to, from)
	to.CloseWrite()
}

func serve(client *net.TCPConn, target string) {
	defer client.Close()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	done := make(chan bool)
	go func() {
		pass(server.(*net.TCPConn), client)
		done <- true
	}()
	pass(client, server.(*net.TCPConn))
	<-done
}

func main() {
	l, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		panic(err)
	}
	for {
		c, err := l.Accept()
		if err == nil {
			go serve(c.(*net.TCPConn), os.Args[2])
		}
	}
}
