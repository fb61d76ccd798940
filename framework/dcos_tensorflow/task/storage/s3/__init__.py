"""S3 as the storage engines use it: requests, retries, uploads and downloads."""
