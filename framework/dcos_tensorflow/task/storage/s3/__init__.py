"""S3 as the storage engines use it: requests, retries, what is brought up and down."""
