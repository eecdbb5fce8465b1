/** With which the program lets a publisher in. */
export const programToken = 'the-key-of-the-publisher-of-this-bench'

/** With which it shows its dashboard. */
export const programAdminToken = 'the-token-of-the-admin-of-this-bench'
