/** With which the program lets a publisher in. */
export const programToken = 'the-key-of-the-publisher-of-this-bench'
