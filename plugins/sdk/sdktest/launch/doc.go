// Package launch starts a worker program as a manager starts it: by go-plugin's handshake, in a process group of its own, with a
// lifeline, with next to nothing in its environment, without input, and with output that is read whatever its size.
//
// It owns one process from Start to Close, and its socket. It holds the process to no limits and watches no memory, as a
// manager does: it is for tests of workers. Callers are the conformance kit's two faces, sdktest and the console. A Process
// ends by itself or at Close, which kills its whole group; it also dies with the process that started it, where the
// kernel can see to that.
package launch
