/** The orders of a shop, and what happens to them: one declaration for the hub and for the page. */
export interface Order {
  id: string
  what: string
  status: Status
}

export const statuses = ['placed', 'packed', 'shipped'] as const
export type Status = (typeof statuses)[number]

export type OrderEvents = {
  placed: Order
  moved: { id: string; status: Status }
}

export type Orders = Readonly<Record<string, Order>>
