package settings

import "time"

// Describe returns the table: the manager's settings, then those of a queue and of a schedule, each in the order in which they are best read.
func Describe() []Setting {
	var table []Setting
	for _, f := range managerFields() {
		table = append(table, f.Setting)
	}
	for _, f := range queueFields() {
		table = append(table, f.Setting)
	}
	for _, f := range scheduleFields() {
		table = append(table, f.Setting)
	}
	return table
}

// Names returns the names of all settings of the scope, in the order of the table.
func Names(scope Scope) []string {
	var names []string
	for _, s := range Describe() {
		if s.Scope == scope {
			names = append(names, s.Name)
		}
	}
	return names
}

func managerFields() []field[Manager] {
	row := func(name string, takes Effect, off, meaning string) Setting {
		return Setting{Scope: ScopeManager, Name: name, Takes: takes, Off: off, Meaning: meaning}
	}
	return []field[Manager]{
		duration(row("drain_timeout", EffectNow, "cancel them at once",
			"How long running tasks may go on when the manager stops; what is left then goes back to the head of its queue."),
			bounds[time.Duration]{100 * time.Millisecond, day, 30 * time.Second},
			func(m *Manager) *time.Duration { return &m.DrainTimeout }),
		duration(row("start_timeout", EffectNextWorker, "",
			"How long a worker process may take from its start until it is ready for tasks."),
			bounds[time.Duration]{100 * time.Millisecond, 10 * time.Minute, 10 * time.Second},
			func(m *Manager) *time.Duration { return &m.StartTimeout }),
		count(row("max_processes", EffectNow, "no limit",
			"The most worker processes of all queues together. What a user queue waits for, a system queue does not get."),
			bounds[int]{1, 4096, 0}, func(m *Manager) *int { return &m.MaxProcesses }),
		size(row("max_memory", EffectNow, "no limit",
			"Memory (RSS) of all worker processes together above which no more are started, and system queues give way to user queues."),
			bounds[Bytes]{16 * MiB, 16384 * GiB, 0}, func(m *Manager) *Bytes { return &m.MaxMemory }),
	}
}

func queueRow(name string, takes Effect, off, meaning string) Setting {
	return Setting{Scope: ScopeQueue, Name: name, Takes: takes, Off: off, Meaning: meaning}
}

func queueFields() []field[Queue] {
	fields := workerFields()
	fields = append(fields, lifeFields()...)
	fields = append(fields, taskFields()...)
	return append(fields, policyFields()...)
}

// workerFields say how many processes there are, and how many tasks.
func workerFields() []field[Queue] {
	return []field[Queue]{
		count(queueRow("max_workers", EffectNow, "",
			"The most worker processes of the queue in this manager. Fewer than now: the surplus ends after its tasks."),
			bounds[int]{1, 1024, 4}, func(q *Queue) *int { return &q.MaxWorkers }),
		count(queueRow("min_workers", EffectNow, "",
			"Worker processes that are kept ready even when there is nothing to do; not more than max_workers."),
			bounds[int]{0, 1024, 0}, func(q *Queue) *int { return &q.MinWorkers }),
		count(queueRow("slots", EffectNextWorker, "",
			"Tasks that one worker process runs at once."),
			bounds[int]{1, 1024, 1}, func(q *Queue) *int { return &q.Slots }),
		count(queueRow("buffer", EffectNow, "",
			"Tasks that the manager takes in advance, so that a freed slot need not wait for Redis."),
			bounds[int]{0, MaxCapacity - 1, 16}, func(q *Queue) *int { return &q.Buffer }),
	}
}

// lifeFields say how long a worker process lives, and how large it may grow.
func lifeFields() []field[Queue] {
	return []field[Queue]{
		duration(queueRow("worker_idle", EffectNow, "idle workers stay",
			"How long a worker above min_workers may have nothing to do before it is stopped."),
			bounds[time.Duration]{100 * time.Millisecond, 7 * day, time.Minute},
			func(q *Queue) *time.Duration { return &q.WorkerIdle }),
		duration(queueRow("worker_lifetime", EffectNow, "no limit",
			"Age at which a worker is replaced after its tasks."),
			bounds[time.Duration]{time.Second, 30 * day, 0},
			func(q *Queue) *time.Duration { return &q.WorkerLifetime }),
		count(queueRow("worker_max_tasks", EffectNow, "no limit",
			"Number of tasks after which a worker is replaced."),
			bounds[int]{1, 1_000_000_000, 0}, func(q *Queue) *int { return &q.WorkerMaxTasks }),
		size(queueRow("memory_soft", EffectNow, "no limit",
			"Memory (RSS of the worker's whole process tree) above which a worker is replaced after its tasks."),
			bounds[Bytes]{MiB, 1024 * GiB, 0}, func(q *Queue) *Bytes { return &q.MemorySoft }),
		size(queueRow("memory_max", EffectNow, "no limit",
			"Memory (RSS of the worker's whole process tree) above which a worker is killed, in the middle of a task."),
			bounds[Bytes]{MiB, 1024 * GiB, 0}, func(q *Queue) *Bytes { return &q.MemoryMax }),
	}
}

// taskFields say how long a task may run, and how often it is tried.
func taskFields() []field[Queue] {
	return []field[Queue]{
		duration(queueRow("task_timeout", EffectNextTask, "",
			"How long one run of a task may take before it is cancelled; kill_grace later its worker is killed."),
			bounds[time.Duration]{100 * time.Millisecond, 7 * day, 5 * time.Minute},
			func(q *Queue) *time.Duration { return &q.TaskTimeout }),
		duration(queueRow("kill_grace", EffectNow, "kill at once",
			"Time between asking a task or a worker to end and killing it."),
			bounds[time.Duration]{10 * time.Millisecond, time.Hour, 10 * time.Second},
			func(q *Queue) *time.Duration { return &q.KillGrace }),
		count(queueRow("max_failures", EffectNow, "",
			"Failures, panics among them, and kills after which a task is dead and not tried again."),
			bounds[int]{1, 1000, 5}, func(q *Queue) *int { return &q.MaxFailures }),
		count(queueRow("max_kills", EffectNow, "",
			"Times that a task may be running when its worker dies or is killed before it is quarantined."),
			bounds[int]{1, 1000, 3}, func(q *Queue) *int { return &q.MaxKills }),
		duration(queueRow("retry_backoff", EffectNow, "",
			"Pause before the first retry; it doubles with every failure and is spread at random."),
			bounds[time.Duration]{100 * time.Millisecond, day, 5 * time.Second},
			func(q *Queue) *time.Duration { return &q.RetryBackoff }),
		duration(queueRow("retry_backoff_max", EffectNow, "",
			"Longest pause before a retry; not less than retry_backoff."),
			bounds[time.Duration]{100 * time.Millisecond, 30 * day, time.Hour},
			func(q *Queue) *time.Duration { return &q.RetryBackoffMax }),
	}
}

// policyFields say how the queue behaves beside others.
func policyFields() []field[Queue] {
	return []field[Queue]{
		rate(queueRow("rate", EffectNow, "no limit",
			"Tasks that may begin in a period, in this manager."),
			bounds[Rate]{Rate{1, time.Hour}, Rate{1_000_000, time.Second}, Rate{}},
			func(q *Queue) *Rate { return &q.Rate }),
		duration(queueRow("retention", EffectNextTask, "no record is kept",
			"How long the record of an ended task, with its result, can be read."),
			bounds[time.Duration]{time.Second, 90 * day, time.Hour},
			func(q *Queue) *time.Duration { return &q.Retention }),
		choice(queueRow("lock_policy", EffectNextTask, "",
			"What happens to a task whose lock another holds: join ends with the holder's result, return tries later, skip ends it without running."),
			[]LockPolicy{LockJoin, LockReturn, LockSkip}, func(q *Queue) *LockPolicy { return &q.LockPolicy }),
		choice(queueRow("lock_missing", EffectNextTask, "",
			"What happens to a task that needs a lock while the store of locks does not answer: wait keeps it until it does, run runs it without."),
			[]LockMissing{LockMissingWait, LockMissingRun}, func(q *Queue) *LockMissing { return &q.LockMissing }),
		choice(queueRow("priority", EffectNow, "",
			"user: people wait for these tasks. system: never takes what a user queue waits for."),
			[]Priority{PriorityUser, PrioritySystem}, func(q *Queue) *Priority { return &q.Priority }),
		written(onDead(queueRow("on_dead", EffectNextTask, "nobody is told",
			"Queue into which a task is put for each task of this queue that dies, is quarantined or expires; its payload is {\"dead_letter\": TASK}.")),
			off, queueName, func(q *Queue) *string { return &q.OnDead }),
	}
}
