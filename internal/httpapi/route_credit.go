package httpapi

import (
	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/credit"
)

// creditLimit is the most that a body about credits may hold.
const creditLimit = 64 << 10

// Where customers, movements and credit types are.
const (
	customersPath   = "/v1/customers"
	movementsPath   = "/v1/movements"
	creditTypesPath = "/v1/credit-types"
)

// creditRoutes are those of customers and credits.
func creditRoutes() []route {
	project := access{kinds: []credential.Kind{credential.Project}}
	plain := jsonBody(creditLimit).refusedAs(api.CodeInvalidRequest)
	withKey := plain.under(credit.KeyPolicy())
	const (
		one  = customersPath + "/{external_user_id}"
		hold = one + "/holds/{hold_id}"
	)
	return []route{
		{"GET", customersPath, project, body{}, reads, listCustomersOperation, (*service).listCustomers},
		{"GET", one, project, body{}, reads, getCustomerOperation, (*service).getCustomer},
		{"PUT", one, project, plain, mutates, ensureCustomerOperation, (*service).ensureCustomer},
		{"PATCH", one, project, plain, mutates, changeCustomerOperation, (*service).changeCustomer},
		{"POST", one + "/topup", project, withKey, keyed, topupOperation, (*service).topup},
		{"POST", one + "/charge", project, withKey, keyed, chargeOperation, (*service).charge},
		{"POST", one + "/adjust", project, withKey, keyed, adjustOperation, (*service).adjust},
		{"GET", one + "/balance", project, body{}, reads, getBalancesOperation, (*service).getBalances},
		{"GET", one + "/grants", project, body{}, reads, listGrantsOperation, (*service).listGrants},
		{"GET", one + "/holds", project, body{}, reads, listHoldsOperation, (*service).listHolds},
		{"GET", hold, project, body{}, reads, getHoldOperation, (*service).getHold},
		{"PUT", hold, project, plain, mutates, placeHoldOperation, (*service).placeHold},
		{"POST", hold + "/capture", project, plain, mutates, captureHoldOperation, (*service).captureHold},
		{"POST", hold + "/release", project, body{}, mutates, releaseHoldOperation, (*service).releaseHold},

		{"GET", movementsPath, project, body{}, reads, listMovementsOperation, (*service).listMovements},
		{"GET", movementsPath + "/export", project, body{}, reads, exportMovementsOperation, (*service).exportMovements},
		{"GET", movementsPath + "/{movement_id}", project, body{}, reads, getMovementOperation, (*service).getMovement},
		{"POST", movementsPath + "/{movement_id}/reversal", project, plain, mutates, reverseMovementOperation, (*service).reverseMovement},

		{"GET", creditTypesPath, project, body{}, reads, listCreditTypesOperation, (*service).listCreditTypes},
		{"PUT", creditTypesPath + "/{name}", project, plain, mutates, declareCreditTypeOperation, (*service).declareCreditType},
	}
}
