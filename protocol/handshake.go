package protocol

// What a manager and a worker process agree on before they speak gRPC. The handshake itself is go-plugin's.
const (
	// Version is the version of drover.worker.v1 that this code speaks. See the package comment for when it changes.
	Version = 1
	// CookieKey and CookieValue tell a worker program that a manager started it; without them it explains itself and exits.
	CookieKey   = "DROVER_WORKER"
	CookieValue = "f0b2c1a8-6f0d-4a6e-9c55-drover-worker"
	// PluginName is the name of the worker in go-plugin's set of plugins.
	PluginName = "worker"
	// EnvAPI names the variable that holds the address of the manager's API for plugins, such as "unix:/run/drover/plugin.sock".
	EnvAPI = "DROVER_API"
	// EnvLifeline names the variable that holds the number of the file descriptor of the lifeline: a pipe that a worker
	// reads until end of file, which says that its manager is gone; then it exits at once.
	EnvLifeline = "DROVER_LIFELINE_FD"
	// MaxMessage is the size of the largest gRPC message, in bytes, either way: one payload or result at its bound with room
	// for what surrounds it, or a batch of smaller ones.
	MaxMessage = 16 << 20
	// MaxBatch is the size at which a writer closes a batch, in bytes.
	MaxBatch = 1 << 20
)
