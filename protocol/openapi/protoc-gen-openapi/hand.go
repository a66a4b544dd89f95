package main

// handPaths are what is served beside the services of the .proto files.
func handPaths() object {
	text := func(kind string) object { return object{kind: object{"schema": object{"type": "string"}}} }
	monitor := func(what, well string, responses object) object {
		responses["200"] = object{"description": well, "content": text("text/plain")}
		return object{"get": object{"tags": []string{"monitoring"}, "description": what, "responses": responses}}
	}
	query := func(name, what string, required bool, schema object) object {
		return object{"name": name, "in": "query", "description": what, "required": required, "schema": schema}
	}
	return object{
		"/v1/tasks/events": object{"get": object{
			"tags": []string{"TaskService"}, "operationId": "TaskService_events",
			"description": "Follows tasks as server-sent events. Their names: ended and unknown, once for each task; progress and state, when asked for; done after the last end; " +
				"failure when the stream has to end early. The data of ended, unknown, progress and state is a drover.api.v1.SubscribeResponse.",
			"parameters": []object{
				query("id", "A task; once for each, at most 1,000.", true, object{"type": "array", "items": object{"type": "string"}}),
				query("progress", "Whether progress and failed runs are told as well.", false, object{"type": "boolean"}),
				{"name": "Last-Event-ID", "in": "header", "description": "The ID of the last event of an earlier connection: what was told by then is not told again.", "schema": object{"type": "string"}},
			},
			"responses": object{
				"200":     object{"description": "Events, until the last end.", "content": text("text/event-stream")},
				"204":     object{"description": "Everything has been told on an earlier connection."},
				"default": failure(),
			},
		}},
		"/healthz": monitor("Whether the process lives.", "It does.", object{}),
		"/readyz":  monitor("Whether it can take and settle tasks.", "It can.", object{"503": object{"description": "It cannot, and says why.", "content": text("text/plain")}}),
		"/metrics": monitor("Metrics for Prometheus.", "The metrics.", object{}),
		"/openapi.json": object{"get": object{"tags": []string{"monitoring"}, "description": "This document.", "responses": object{
			"200": object{"description": "The document.", "content": object{"application/json": object{"schema": object{"type": "object"}}}},
		}}},
	}
}

// handSchemas are the errors of the connect protocol.
func handSchemas() object {
	codes := []string{
		"canceled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists", "permission_denied", "resource_exhausted",
		"failed_precondition", "aborted", "out_of_range", "unimplemented", "internal", "unavailable", "data_loss", "unauthenticated",
	}
	return object{"Error": object{
		"type": "object", "required": []string{"code"}, "description": "Why a call was not carried out.",
		"properties": object{
			"code":    object{"type": "string", "enum": codes},
			"message": object{"type": "string", "description": "For people: what is wrong, and what to do about it."},
		},
	}}
}

// failure is the answer to a call that was not carried out.
func failure() object {
	return object{
		"description": "It was not done. Over a limit (429, resource_exhausted) the header Retry-After says for how many seconds to wait.",
		"content":     object{"application/json": object{"schema": reference("Error")}},
	}
}
