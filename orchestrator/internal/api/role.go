package api

import (
	"fmt"

	"github.com/drover-jobs/drover/protocol/drover/api/v1/apiv1connect"
)

// Role is what may be done with a token.
type Role string

// The roles.
const (
	// RoleSubmit may submit, follow and cancel tasks.
	RoleSubmit Role = "submit"
	// RoleObserve may look at everything and follow tasks.
	RoleObserve Role = "observe"
	// RoleOperate may do everything.
	RoleOperate Role = "operate"
)

// ParseRole reads a role's name.
func ParseRole(name string) (Role, error) {
	switch r := Role(name); r {
	case RoleSubmit, RoleObserve, RoleOperate:
		return r, nil
	default:
		return "", fmt.Errorf("unknown role %q: use submit, observe or operate", name)
	}
}

// may reports whether a role allows a procedure. What is not named here is for those who operate.
func (r Role) may(procedure string) bool {
	switch procedure {
	case apiv1connect.TaskServiceGetProcedure, apiv1connect.TaskServiceWaitProcedure, apiv1connect.TaskServiceSubscribeProcedure,
		pathEvents, pathOpenAPI:
		return true
	case apiv1connect.TaskServiceSubmitProcedure, apiv1connect.TaskServiceSubmitBatchProcedure, apiv1connect.TaskServiceCancelProcedure:
		return r != RoleObserve
	case apiv1connect.ControlServiceStatusProcedure, apiv1connect.ControlServiceManagersProcedure, apiv1connect.ControlServiceExamineProcedure,
		apiv1connect.ControlServiceExplainProcedure, apiv1connect.ControlServiceLocksProcedure,
		apiv1connect.ControlServiceListTasksProcedure, apiv1connect.ControlServiceSettingsProcedure, apiv1connect.ControlServiceWatchProcedure,
		apiv1connect.ControlServiceLogsProcedure, apiv1connect.ControlServiceSchedulesProcedure:
		return r != RoleSubmit
	case pathMetrics:
		return r != RoleSubmit
	default:
		return r == RoleOperate
	}
}
