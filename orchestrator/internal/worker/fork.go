package worker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-jobs/drover/orchestrator/internal/reaper"
)

// How the process comes to be: as which user, and within which limits.

// credentials are the user that a process is to run as; none when nil.
type credentials struct {
	*syscall.Credential
	user string
}

// lookUp finds a user by name or number. The user of the manager itself needs nothing.
func lookUp(name string) (credentials, error) {
	if name == "" {
		return credentials{}, nil
	}
	found, err := user.Lookup(name)
	if _, unknown := errors.AsType[user.UnknownUserError](err); unknown {
		if _, notANumber := strconv.ParseUint(name, 10, 32); notANumber == nil {
			found, err = user.LookupId(name)
		}
	}
	if err != nil {
		return credentials{}, fmt.Errorf("the user %q that it is to run as is not known: %w", name, err)
	}
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	if err != nil {
		return credentials{}, fmt.Errorf("the number of user %q: %w", name, err)
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	if err != nil {
		return credentials{}, fmt.Errorf("the group of user %q: %w", name, err)
	}
	if int(uid) == os.Geteuid() { //nolint:gosec // 32 bits
		return credentials{user: name}, nil
	}
	credential := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	others, err := found.GroupIds()
	if err != nil {
		return credentials{}, fmt.Errorf("the groups of user %q: %w", name, err)
	}
	for _, other := range others {
		if id, err := strconv.ParseUint(other, 10, 32); err == nil {
			credential.Groups = append(credential.Groups, uint32(id))
		}
	}
	return credentials{Credential: credential, user: name}, nil
}

// OtherUser is the number of a user, by name or number, and whether it is another than the manager's own; an empty name is the
// manager's own. An error says that there is no such user.
func OtherUser(name string) (uid int, other bool, err error) {
	wanted, err := lookUp(name)
	if err != nil || wanted.Credential == nil {
		return os.Geteuid(), false, err
	}
	return int(wanted.Uid), true, nil
}

// become makes the process one of its user, who gets the directory of its socket: nobody else can enter that, and in the one above
// others can find only what they know the name of. The user gets the pipes as well, to be able to open /dev/stderr.
func (r *processRunner) become(pipes ...*os.File) error {
	if r.wanted.Credential == nil {
		return nil
	}
	r.cmd.SysProcAttr.Credential = r.wanted.Credential
	if err := os.Chown(r.sockets, int(r.wanted.Uid), int(r.wanted.Gid)); err != nil {
		return r.explain(fmt.Errorf("give it the directory of its socket: %w", err))
	}
	for _, pipe := range pipes {
		if err := pipe.Chown(int(r.wanted.Uid), int(r.wanted.Gid)); err != nil {
			return r.explain(fmt.Errorf("give it its output: %w", err))
		}
	}
	const passable = 0o711
	if err := os.Chmod(r.launcher.socketDir, passable); err != nil {
		return fmt.Errorf("let user %s into the directory of worker sockets: %w", r.wanted.user, err)
	}
	return nil
}

// openProgram opens the file that is run in place of the program: it may lie where another user cannot get. The process finds it open,
// and keeps it.
func (r *processRunner) openProgram() (*os.File, error) {
	program, err := os.Open(r.cmd.Path)
	if err != nil {
		return nil, fmt.Errorf("open what is to be run as %s: %w", r.Name(), err)
	}
	r.cmd.ExtraFiles = append(r.cmd.ExtraFiles, program)
	const firstExtra = 3
	r.cmd.Path = "/proc/self/fd/" + strconv.Itoa(firstExtra+len(r.cmd.ExtraFiles)-1)
	return program, nil
}

// explain says what another user takes.
func (r *processRunner) explain(err error) error {
	switch {
	case r.wanted.Credential == nil:
		return err
	case errors.Is(err, syscall.EPERM):
		return fmt.Errorf("only root may start a plugin as another user (%s): run droverd as root, or leave the user out: %w", r.wanted.user, err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("user %s may not run it: make the file executable for that user, and every directory above it passable: %w", r.wanted.user, err)
	}
	return err
}

// fork starts the process. It is called on the launcher's thread.
//
// There is no way to hand limits to a fork, so the new process is stopped, by ptrace(2), when it has become the program and
// has not yet run any of it, and gets its limits there. Where tracing is forbidden, it gets them a moment after its start.
func (r *processRunner) fork() error {
	traced := !r.launcher.untraced
	r.cmd.SysProcAttr.Ptrace = traced
	err := r.cmd.Start()
	if traced && errors.Is(err, syscall.EPERM) {
		traced = false
		r.cmd = again(r.cmd)
		err = r.cmd.Start()
		r.launcher.untraced = err == nil // else it was something else that is forbidden
	}
	if err != nil {
		return err
	}
	r.launcher.forked(r)
	pid := r.cmd.Process.Pid
	if traced {
		awaitStop(pid)
	}
	err = r.wanted.asOwner(func() error { return r.limits.impose(pid) })
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	r.note(pid)
	if traced {
		_ = syscall.PtraceDetach(pid) // an error says that it was killed meanwhile
	}
	if err != nil {
		_ = r.cmd.Wait()
		r.launcher.collected(pid)
		reaper.Forget(r.launcher.socketDir, pid)
		r.cmd.Process = nil // there never was one
	}
	return err
}

// again is a command that has not been started, and without tracing.
func again(cmd *exec.Cmd) *exec.Cmd {
	attr := *cmd.SysProcAttr
	attr.Ptrace = false
	return &exec.Cmd{
		Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, SysProcAttr: &attr,
		Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr, ExtraFiles: cmd.ExtraFiles,
	}
}

// awaitStop waits until the process has become the program, or has died of something. It collects nothing.
func awaitStop(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// asOwner calls a function as the user, as far as permissions of prlimit(2) go: it asks for the real user and group, or for a capability
// that root lacks in many a container. It is called on the launcher's thread, and changes no other: the kernel has an identity for
// each thread.
func (c credentials) asOwner(call func() error) error {
	if c.Credential == nil {
		return call()
	}
	const keep = ^uintptr(0)
	uid, gid := uintptr(os.Getuid()), uintptr(os.Getgid()) //nolint:gosec // not negative
	set := func(uid, gid uintptr) error {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESGID, gid, keep, keep); errno != 0 {
			return errno
		}
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, uid, keep, keep); errno != 0 {
			return errno
		}
		return nil
	}
	err := set(uintptr(c.Uid), uintptr(c.Gid))
	if err == nil {
		err = call()
	}
	if back := set(uid, gid); back != nil {
		return errors.Join(err, fmt.Errorf("act for the manager's own user again: %w", back))
	}
	return err
}

// impose sets the limits of a process.
func (l Rlimits) impose(pid int) error {
	const second = uint64(time.Second)
	limits := []struct {
		what     int
		name     string
		value    uint64
		set      bool
		headroom uint64 // between the signal and the kill
	}{
		{unix.RLIMIT_CORE, "core_size", l.CoreSize, true, 0},
		{unix.RLIMIT_NOFILE, "open_files", l.OpenFiles, l.OpenFiles > 0, 0},
		{unix.RLIMIT_NPROC, "processes", l.Processes, l.Processes > 0, 0},
		{unix.RLIMIT_FSIZE, "file_size", l.FileSize, l.FileSize > 0, 0},
		{unix.RLIMIT_CPU, "cpu", (uint64(l.CPU) + second - 1) / second, l.CPU > 0, 2}, //nolint:gosec // positive where it is used
	}
	for _, limit := range limits {
		if !limit.set {
			continue
		}
		value := unix.Rlimit{Cur: limit.value, Max: limit.value + limit.headroom}
		if err := unix.Prlimit(pid, limit.what, &value, nil); err != nil {
			return fmt.Errorf("limit its %s to %d (only root may go above the manager's own limit): %v", limit.name, limit.value, err) //nolint:errorlint // its EPERM is not that of a start
		}
	}
	return nil
}
